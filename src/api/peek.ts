/**
 * A peek: a read of the status of a key that counts nothing. It changes nothing and is not logged, so the answer may
 * be outdated when it is read. Plain data.
 */
import type { Invalid, LimitStatus, Receipt, Unavailable } from './answer.ts';

/** The question of a caller. */
export interface PeekQuestion {
  /** The key as rules build it, such as `user=ada`. 1 to `KEY_BYTES_MAX` bytes. */
  readonly key: string;
  /**
   * The id of a rule of the table or of a stated rule, 1 to `RULE_ID_BYTES_MAX` bytes. Absent: all rules that count
   * by such keys.
   */
  readonly rule?: string | undefined;
}

/** The request to a partition. */
export interface PeekRequest {
  readonly ask: 'peek';
  /** The key: 1 to `KEY_BYTES_MAX` bytes. */
  readonly userId: string;
  /** The id of the rule, 1 to `RULE_ID_BYTES_MAX` bytes. Absent: every rule of the table. */
  readonly ruleId?: string | undefined;
  /** The cost that the peek asks about: 1 to `COST_MAX`; absent means 1. */
  readonly cost?: number | undefined;
  /** The time that the peek asks about, in milliseconds since 1970, as in `AllowRequest`. Absent: group time. */
  readonly timestampMillis?: number | undefined;
}

/** The status of a key under each rule, for a request with the cost and the time of the peek. */
export interface KeyStatus {
  /** In the order of the rules; only one if a rule was named. */
  readonly limits: readonly LimitStatus[];
  /** The state that was read: after the whole entry `index`. `timeMillis` is the group time of the peek. */
  readonly decided: Receipt;
  /** The key is blocked: every request is denied even if something remains (see `Decision`). */
  readonly isBlocked?: true;
  /** When the block ends, in group time. Absent if it has no end. */
  readonly blockedUntilMillis?: number;
  /**
   * A request with only this key is denied, because no rule matches it and the rule document denies such requests.
   */
  readonly isUnmatched?: true;
  /** The version of the rules in force there. */
  readonly rulesVersion: number;
}

/** The answer to a peek. */
export type PeekAnswer =
  | { readonly kind: 'keyStatus'; readonly keyStatus: KeyStatus }
  | Invalid
  | Unavailable;
