/**
 * One rule in one process, without a cluster: the base class of the library, and the checks of its arguments. It
 * uses the judgement of the replicated state machine and decides like a rule with the `request` clock, but the
 * caller chooses when idle users are forgotten.
 */

import { LIMIT_MAX, type Rule, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { Judgement } from '../judge.ts';
import type { Question } from '../question.ts';
import type { DecidedAt } from '../decisions-without-limit.ts';
import { DEFAULT_RULE } from '../rules.ts';
import { KeyTable } from '../state/key-table.ts';
import { StateSize } from '../state/state-size.ts';
import { TextBytes } from '../state/text-bytes.ts';
import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { COST_MAX, TIMESTAMP_MILLIS_MAX, USER_ID_BYTES_MAX } from '../../api/request.ts';

/** There is no group; the only time is that of the caller. */
const GROUP_MILLIS = 0;
const NOWHERE: DecidedAt = { term: 0, index: 0, position: undefined, rulesVersion: 0 };

/** One limit for many users. */
export class LocalLimiter {
  readonly #table: KeyTable;
  readonly #judgement = new Judgement();
  /** Reused for all requests. */
  readonly #question: Question & { timestampMillis: number; cost: number } = {
    ruleId: DEFAULT_RULE,
    cost: 1,
    timestampMillis: 0,
    hasRequestId: false,
    askedDigest: undefined,
    ifRemembered: false,
    isSettled: false,
    attempt: undefined,
    guard: undefined,
  };
  // oxlint-disable-next-line no-restricted-properties -- where a user is found by it, and nothing else
  readonly #name = new TextBytes(Math.random() * 2 ** 53);

  constructor(rule: Omit<Rule, 'id' | 'clock'>) {
    this.#table = new KeyTable({
      rule: { id: DEFAULT_RULE, clock: 'request', ...rule },
      // The window is not widened for clock drift: all times come from one caller.
      effectiveWindowMillis: rule.windowMillis,
      createdMillis: 0,
      size: new StateSize(),
    });
  }

  /** Number of users that something is remembered of. */
  get userCount(): number {
    return this.#table.size;
  }

  /**
   * Decides one request and records it if it is granted; a denied one changes nothing.
   *
   * @param userId 1 to 256 bytes of UTF-8
   * @param timestampMillis 0 to 8_640_000_000_000_000; one below the user's newest grant is decided at the time of that
   * grant
   * @param cost 1 to 1_000_000
   * @throws InvalidLimiterArgumentError
   */
  allow(userId: string, timestampMillis: number, cost = 1): boolean {
    this.#judge(userId, timestampMillis, cost);
    // `isHeld` is ignored: by calling `evictIdle`, the caller promised that no request with so early a timestamp
    // follows.
    if (!this.#judgement.isWithinLimit) return false;
    this.#table.grant(this.#judgement, this.#name, GROUP_MILLIS);
    return true;
  }

  /** Like `allow`, with the wait of a granted request. */
  protected decide(
    userId: string,
    timestampMillis: number,
    cost: number,
  ): { readonly allowed: boolean; readonly waitMillis?: number } {
    this.#judge(userId, timestampMillis, cost);
    if (!this.#judgement.isWithinLimit) return this.#judgement.denial(NOWHERE);
    return this.#judgement.grant(this.#table.grant(this.#judgement, this.#name, GROUP_MILLIS), NOWHERE);
  }

  #judge(userId: string, timestampMillis: number, cost: number): void {
    requireUserId(userId);
    requireTimestamp('timestampMillis', timestampMillis);
    requireCost(cost);
    this.#name.set(userId);
    this.#question.timestampMillis = timestampMillis;
    this.#question.cost = cost;
    // The library has no refunds, so no grant is kept for longer than its window.
    this.#judgement.judgeLimit(
      this.#table,
      this.#table.keys.find(this.#name),
      this.#question,
      timestampMillis,
    );
  }

  /**
   * Forgets users with nothing that counts any more at `beforeMillis`, and returns how many. O(users).
   *
   * @param beforeMillis 0 to 8_640_000_000_000_000; should not be ahead of the timestamps still to come
   * @throws InvalidLimiterArgumentError
   */
  evictIdle(beforeMillis: number): number {
    requireTimestamp('beforeMillis', beforeMillis);
    const table = this.#table;
    const before = table.size;
    for (let slot = 0; slot < table.size;) {
      const idleAtMillis = table.meter.idleAtMillis(slot, table.effectiveWindowMillis, table.rule);
      // Forgetting a slot moves the last one into it, so stay at this slot.
      if (idleAtMillis <= beforeMillis) table.forget(slot);
      else slot += 1;
    }
    return before - table.size;
  }
}

/** An argument of a limiter is out of range. `field` names it. */
export class InvalidLimiterArgumentError extends RangeError {
  override readonly name = 'InvalidLimiterArgumentError';
  readonly code = 'INVALID_LIMITER_ARGUMENT';
  readonly field: string;

  constructor(field: string, bound: string, value: string | number) {
    super(`${field} must be ${bound}, but is ${value === '' ? 'empty' : String(value).slice(0, 64)}`);
    this.field = field;
  }
}

/** @throws InvalidLimiterArgumentError unless `value` is an integer from `min` to `max` */
export function requireInteger(field: string, value: number, min: number, max: number): void {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidLimiterArgumentError(field, `an integer from ${min} to ${max}`, value);
  }
}

/** Checks the limit and window that every limiter takes; the ranges are those of a rule. */
export function requireLimit(limit: number, windowMillis: number): void {
  requireInteger('limit', limit, 0, LIMIT_MAX);
  requireInteger('windowMillis', windowMillis, 1, WINDOW_MILLIS_MAX);
}

/** @throws InvalidLimiterArgumentError unless it is 1 to `USER_ID_BYTES_MAX` bytes of UTF-8 */
function requireUserId(userId: string): void {
  if (!isBoundedText(userId, USER_ID_BYTES_MAX)) {
    throw new InvalidLimiterArgumentError('userId', `text of 1 to ${USER_ID_BYTES_MAX} bytes`, userId);
  }
}

/** @throws InvalidLimiterArgumentError unless it is an integer from 0 to `TIMESTAMP_MILLIS_MAX` */
function requireTimestamp(field: string, timestampMillis: number): void {
  requireInteger(field, timestampMillis, 0, TIMESTAMP_MILLIS_MAX);
}

/** @throws InvalidLimiterArgumentError unless it is an integer from 1 to `COST_MAX` */
function requireCost(cost: number): void {
  requireInteger('cost', cost, 1, COST_MAX);
}
