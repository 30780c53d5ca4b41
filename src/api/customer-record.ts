/** What is known of one key beyond its grants, and by which version of that a request was matched. Plain data. */

/** The longest tier, in UTF-8 bytes. */
export const TIER_BYTES_MAX = 64;
/** The most limits of its own that a key may have. */
export const OVERRIDES_MAX = 16;

/** Takes the place of limit and burst of one rule, for one key. */
export interface LimitOverride {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. Where there is no such rule it changes nothing. */
  readonly ruleId: string;
  /** 0 (deny all) to `LIMIT_MAX`. */
  readonly limit: number;
  /** Only for a bucket: 1 to `LIMIT_MAX`. Absent: the burst is `limit`, whatever the rule says. */
  readonly burst?: number;
}

/** The longest block that has an end, in milliseconds: 31 days. */
export const BLOCK_MILLIS_MAX = 2_678_400_000;

/** What is known of a key. */
export interface CustomerRecord {
  /** Grows with every change of the record; no two records of one key share it. 0: the key has no record. */
  readonly version: number;
  /** 1 to `TIER_BYTES_MAX` bytes. */
  readonly tier?: string;
  /** At most `OVERRIDES_MAX`, each for another rule. */
  readonly overrides: readonly LimitOverride[];
  /** Everything is denied, until an operator takes that back or the block ends: no request changes that. */
  readonly isBlocked: boolean;
  /**
   * When the block ends, in the group time of the key's partition; absent if it has no end. No partition answers with a
   * block that has ended, so readers of a record need no clock.
   */
  readonly blockedUntilMillis?: number;
}

export const NO_RECORD: CustomerRecord = { version: 0, overrides: [], isBlocked: false };

/** A request was matched with the record of a key, and counts only if that still has this version. */
export interface CustomerGuard {
  /** 1 to `KEY_BYTES_MAX` bytes, of the partition of the request's `userId`. */
  readonly userId: string;
  /** 0: there is none. */
  readonly version: number;
}
