/**
 * Answers that a leader gives from its applied state, without the log. They change nothing.
 *
 * Most requests are granted, and judging each one both here and in the log takes a leader a tenth of its time. So a
 * request under a single limit is judged here only if its key was denied recently, or if the log cannot be asked. The
 * log judges the others.
 */
import type { AllowRequest } from '../api/request.ts';
import type { PeekRequest } from '../api/peek.ts';
import type { Answer, LoggedRequest } from '../api/user-request.ts';
import type { TimestampBound } from '../limiter/admission.ts';
import type { Decision } from '../limiter/decision.ts';
import { isOfCustomer } from '../limiter/decisions-without-limit.ts';
import type { LimiterStateMachine } from '../limiter/state-machine.ts';
import type { Room } from '../limiter/state/state-size.ts';
import { answerOf, invalid, unavailable, unknownRule } from './answer.ts';
import type { Housekeeping } from './housekeeping.ts';

/**
 * When a key is denied this long after the recent set was begun, or when that set has `KEYS_MAX` keys, the recent set
 * becomes the older one, and the older one is dropped.
 */
const KNOWN_MILLIS = 30_000;
/** The maximum number of keys in each of the two sets. Further keys whose limit is used up are denied by the log. */
const KEYS_MAX = 10_000;
/**
 * After the state had no room for a key, all requests are judged first for this long, because more new keys may be
 * refused.
 */
const FULL_MILLIS = 10_000;

interface QuickAnswersInit {
  readonly machine: LimiterStateMachine;
  readonly housekeeping: Housekeeping;
  /** Group time in milliseconds. */
  readonly nowMillis: () => number;
  readonly room: () => Room;
  readonly bound: TimestampBound;
}

/**
 * The keys that the log has denied recently, in two sets: the recent one, and the one before it. Requests of these keys
 * are judged before they are proposed. If a spent key is missing here, its request just costs an entry, and the log
 * denies it.
 */
class RecentlyDenied {
  #recent = new Set<string>();
  #before = new Set<string>();
  #sinceMillis = -Infinity;
  #fullUntilMillis = -Infinity;

  /** @param nowMillis group time */
  has(key: string, nowMillis: number): boolean {
    return this.#recent.has(key) || this.#before.has(key) || nowMillis < this.#fullUntilMillis;
  }

  denied(key: string, nowMillis: number): void {
    if (nowMillis - this.#sinceMillis >= KNOWN_MILLIS || this.#recent.size >= KEYS_MAX) {
      this.#before = this.#recent;
      this.#recent = new Set();
      this.#sinceMillis = nowMillis;
    }
    this.#recent.add(key);
  }

  /** The log found no room for a key. */
  refusedAtCapacity(nowMillis: number): void {
    this.#fullUntilMillis = nowMillis + FULL_MILLIS;
  }
}

/** The quick answers of one partition. */
export class QuickAnswers {
  readonly #init: QuickAnswersInit;
  readonly #recentlyDenied = new RecentlyDenied();

  constructor(init: QuickAnswersInit) {
    this.#init = init;
  }

  /** Answers a peek from the applied state. */
  peek(request: PeekRequest): Answer {
    const { machine, nowMillis } = this.#init;
    if (machine.ruleTable === undefined) return unavailable('starting', false);
    const keyStatus = machine.peek(request, nowMillis());
    return keyStatus === undefined ? unknownRule(request.ruleId ?? '') : { kind: 'keyStatus', keyStatus };
  }

  /**
   * The denial, by a limit, of a request whose limits were found by the applied rules; undefined if the request must
   * take the usual path. A deposed leader also answers until it steps down, without the resets, refunds and raised
   * limits of its successor: for at most two election timeouts.
   */
  denialOf(request: AllowRequest): Decision | undefined {
    const { machine, bound } = this.#init;
    if (machine.ruleTable === undefined || machine.ruleTable.version !== request.matchedBy) return undefined;
    if (machine.inadmissible(request, bound) !== undefined) return undefined;
    const denial = this.#judged(request);
    // Refusals are left to the leader's full path, which also counts them.
    return denial?.refusal === undefined ? denial : undefined;
  }

  /**
   * The answer without the log to a request that has no earlier grant and whose limits were found by the applied rules;
   * undefined if the log must be asked.
   *
   * @param mustJudge the log cannot be asked
   */
  rejectionOf(request: AllowRequest, mustJudge: boolean): Answer | undefined {
    const { machine, housekeeping, bound } = this.#init;
    const denial = mustJudge || this.#mayBeDenied(request) ? this.#judged(request) : undefined;
    // The customer decides which limits apply, so a block or a changed record comes before the other checks.
    if (denial !== undefined && isOfCustomer(denial)) return answerOf(denial, request.requestId);
    const wrong = machine.inadmissible(request, bound);
    if (wrong !== undefined) return invalid(wrong.field, wrong.message);
    if (denial?.refusal === 'at_capacity') {
      housekeeping.refusedAtCapacity();
      return unavailable('at_capacity', false);
    }
    return denial && answerOf(denial, request.requestId);
  }

  #mayBeDenied(request: AllowRequest): boolean {
    const { machine, room, nowMillis } = this.#init;
    if (request.further !== undefined || request.guard !== undefined || room() !== 'free') return true;
    return this.#recentlyDenied.has(request.userId, nowMillis()) || !machine.hasRuleOf(request);
  }

  #judged(request: AllowRequest): Decision | undefined {
    const { machine, room, nowMillis } = this.#init;
    return machine.quickDenial(request, nowMillis(), room());
  }

  /** The log has denied the request. */
  denied({ userId }: LoggedRequest, { refusal }: Decision, nowMillis: number): void {
    this.#recentlyDenied.denied(userId, nowMillis);
    if (refusal !== 'at_capacity') return;
    this.#recentlyDenied.refusedAtCapacity(nowMillis);
    this.#init.housekeeping.refusedAtCapacity();
  }
}

/** Whether this is an operator's request that stores something new, a record or a used amount, and so needs room. */
export function isPut(request: LoggedRequest): boolean {
  return request.ask === 'customer' && (request.action.type === 'put' || request.action.type === 'set');
}
