/** What the limiter answers, and the receipt that makes every answer checkable from outside. Plain data only. */

import type { Conflict } from './fingerprint.ts';

/** A place in the log and the group time stamped there. */
export interface AppliedPosition {
  readonly index: number;
  readonly term: number;
  /** Group time in milliseconds; never decreases along a log. */
  readonly timeMillis: number;
}

/** Where a decision was made. For a grant, the entry that made it; for a denial, the state it was read from. */
export interface Receipt {
  readonly term: number;
  readonly index: number;
  /**
   * The request's place in the entry, from 0: no two requests share an index and a position. Absent where no entry
   * made the decision: a denial that was read from the state after the whole entry `index`.
   */
  readonly position?: number;
  /** The time the decision used, after clamping: the stamp a grant is recorded with. */
  readonly timeMillis: number;
}

/**
 * Why a request was not judged by a limit.
 * - `unknown_rule`: there is no such rule
 * - `request_id_reused`: its request id belongs to another request; see `Decision.conflict`
 * - `at_capacity`: it would have been granted, but there is no room to remember that
 */
export type Refusal = 'unknown_rule' | 'request_id_reused' | 'at_capacity';

/**
 * The answer to one request. All numbers are integers >= 0. Durations count from the time the request asked
 * for (its timestamp, or group time), not from the possibly later time it was clamped to.
 */
export interface Decision {
  readonly allowed: boolean;
  /** The rule that decided; '' when the default rule was meant and there is no table yet. */
  readonly ruleId: string;
  readonly limit: number;
  /** The rule's window as it was stated, without the widening for group time. */
  readonly windowMillis: number;
  /** Cost that still fits at the time of the decision, this request included when granted. */
  readonly remaining: number;
  /**
   * Milliseconds until a request of the same cost (after a grant: of cost 1) would be granted if nothing else
   * is; 0 means at once. A cost above the limit never fits: then this is the rule's window.
   */
  readonly retryAfterMillis: number;
  /** Milliseconds until the whole limit is available again if nothing else is granted. */
  readonly resetMillis: number;
  readonly decided: Receipt;
  /** Present when the request was not judged by a limit at all. It is not allowed then, and all numbers are 0. */
  readonly refusal?: Refusal;
  /** Present with `request_id_reused`. */
  readonly conflict?: Conflict;
}
