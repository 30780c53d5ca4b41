/** What the limiter answers, and the receipt that makes every answer checkable from outside. Plain data only. */

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
  /** The time the decision used, after clamping: the stamp a grant is recorded with. */
  readonly timeMillis: number;
}

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
  /** Present when the request was not judged by a limit at all: there is no such rule. */
  readonly refusal?: 'unknown_rule';
}
