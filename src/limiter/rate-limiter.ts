/**
 * The sliding log as a library: one limit, one process, no cluster. It asks the judgement of the replicated state
 * machine, and decides as a rule with the `request` clock does; only when a user is forgotten is for its caller to say.
 */

import { isBoundedInteger, isBoundedText } from '../api/bounded.ts';
import { KEY_BYTES_MAX, TIMESTAMP_MILLIS_MAX } from '../api/request.ts';
import { Judgement, type Question } from './judge.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../api/rule.ts';
import { DEFAULT_RULE } from './rules.ts';
import { KeyTable } from './state/key-table.ts';
import { StateSize } from './state/state-size.ts';
import { TextBytes } from './state/text-bytes.ts';

/** There is no group, and no time but that of the caller. */
const GROUP_MILLIS = 0;

/** An argument of `RateLimiter` is out of bounds. `field` names it. */
export class InvalidLimiterArgumentError extends RangeError {
  override readonly name = 'InvalidLimiterArgumentError';
  readonly code = 'INVALID_LIMITER_ARGUMENT';
  readonly field: string;

  constructor(field: string, bound: string, value: string | number) {
    super(`${field} must be ${bound}, but is ${String(value).slice(0, 64)}`);
    this.field = field;
  }
}

/**
 * Grants each user at most `maxRequests` requests in any rolling window of `windowMillis`.
 *
 * A grant exactly one window old no longer counts; a denied request never counts; equal timestamps are
 * separate requests. Amortised O(1) per request, 8 to 16 bytes per live grant.
 *
 * @example
 * const limiter = new RateLimiter(3, 10_000);
 * limiter.allow('ada', 0); // true
 * limiter.allow('ada', 1_000); // true
 * limiter.allow('ada', 2_000); // true
 * limiter.allow('ada', 3_000); // false
 * limiter.allow('ada', 11_000); // true: the grants at 0 and 1000 have left the window
 */
export class RateLimiter {
  readonly maxRequests: number;
  readonly windowMillis: number;
  readonly #table: KeyTable;
  readonly #judgement = new Judgement();
  /** One object for all requests. */
  readonly #question: Question & { timestampMillis: number } = {
    ruleId: DEFAULT_RULE,
    cost: 1,
    timestampMillis: 0,
    hasRequestId: false,
  };
  // oxlint-disable-next-line no-restricted-properties -- where a user is found by it, and nothing else
  readonly #name = new TextBytes(Math.random() * 2 ** 53);

  /**
   * @param maxRequests 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(maxRequests: number, windowMillis: number) {
    requireInteger('maxRequests', maxRequests, 0, LIMIT_MAX);
    requireInteger('windowMillis', windowMillis, 1, WINDOW_MILLIS_MAX);
    this.maxRequests = maxRequests;
    this.windowMillis = windowMillis;
    this.#table = new KeyTable({
      rule: { id: DEFAULT_RULE, limit: maxRequests, windowMillis, clock: 'request' },
      // All time is that of the caller: there is none to be widened for.
      effectiveWindowMillis: windowMillis,
      createdMillis: 0,
      size: new StateSize(),
    });
  }

  /** Number of users with recorded grants. */
  get userCount(): number {
    return this.#table.size;
  }

  /**
   * Decides one request and records it when granted.
   *
   * @param userId 1 to 256 bytes
   * @param timestampMillis 0 to 8_640_000_000_000_000. Should not decrease per user; one below the user's newest
   * grant is decided at the time of that grant.
   * @throws InvalidLimiterArgumentError
   */
  allow(userId: string, timestampMillis: number): boolean {
    if (!isBoundedText(userId, KEY_BYTES_MAX)) {
      throw new InvalidLimiterArgumentError('userId', `text of 1 to ${KEY_BYTES_MAX} bytes`, userId);
    }
    requireInteger('timestampMillis', timestampMillis, 0, TIMESTAMP_MILLIS_MAX);
    this.#name.set(userId);
    this.#question.timestampMillis = timestampMillis;
    const slot = this.#table.keys.find(this.#name);
    this.#judgement.judgeLimit(this.#table, slot, this.#question, GROUP_MILLIS);
    // Who is held back, for what was forgotten, is not denied here: the caller said that none so early would come.
    if (!this.#judgement.isWithinLimit) return false;
    this.#table.grant(this.#judgement, this.#name, GROUP_MILLIS);
    return true;
  }

  /**
   * Forgets users whose grants have all left the window at `beforeMillis`, and returns how many. Call it when
   * memory matters; O(users). Afterwards a request of a user without recorded grants is decided at
   * a time at which all that was forgotten is out of the window, so a late timestamp cannot get around it.
   *
   * @param beforeMillis 0 to 8_640_000_000_000_000; should not be ahead of the timestamps still to come
   * @throws InvalidLimiterArgumentError
   */
  evictIdle(beforeMillis: number): number {
    requireInteger('beforeMillis', beforeMillis, 0, TIMESTAMP_MILLIS_MAX);
    const table = this.#table;
    const before = table.size;
    for (let slot = 0; slot < table.size;) {
      // The last one takes the place of one that is forgotten.
      if (table.meter.idleAtMillis(slot, this.windowMillis, table.rule) <= beforeMillis) table.forget(slot);
      else slot += 1;
    }
    return before - table.size;
  }
}

function requireInteger(field: string, value: number, min: number, max: number): void {
  if (!isBoundedInteger(value, min, max)) {
    throw new InvalidLimiterArgumentError(field, `an integer from ${min} to ${max}`, value);
  }
}
