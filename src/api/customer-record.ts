/**
 * The record of a key: a tier, limits of its own, a block. Operators set it. Requests are matched with one version of
 * it. Plain data.
 */

/** The longest tier name in UTF-8 bytes. */
export const TIER_BYTES_MAX = 64;
/** The most overrides that one key may have. */
export const OVERRIDES_MAX = 16;

/** Replaces `limit` and `burst` of one rule for one key. */
export interface LimitOverride {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. If no rule has this id, the override has no effect. */
  readonly ruleId: string;
  /** 0 (deny all) to `LIMIT_MAX`. */
  readonly limit: number;
  /** Only for a bucket: 1 to `LIMIT_MAX`. Absent: the burst equals `limit`, also if the rule has another one. */
  readonly burst?: number;
}

/** The longest block that has an end, in milliseconds: 31 days. */
export const BLOCK_MILLIS_MAX = 2_678_400_000;

/** The record of one key. */
export interface CustomerRecord {
  /**
   * Grows with every change of the record; no two records of one key have the same version. 0: the key has no record.
   */
  readonly version: number;
  /** 1 to `TIER_BYTES_MAX` bytes. */
  readonly tier?: string;
  /** At most `OVERRIDES_MAX`, each for a different rule. */
  readonly overrides: readonly LimitOverride[];
  /** While true, every request of the key is denied. Only an operator, or the end of the block, changes that. */
  readonly isBlocked: boolean;
  /**
   * When the block ends, in the group time of the key's partition. Absent if it has no end. A partition never answers
   * with a block that has already ended, so readers of a record need no clock.
   */
  readonly blockedUntilMillis?: number;
}

/** The record of a key that has none. */
export const NO_RECORD: CustomerRecord = { version: 0, overrides: [], isBlocked: false };

/**
 * The record version a request was matched with. The request counts only if the key's record still has this version.
 */
export interface CustomerGuard {
  /** The key of the record: 1 to `KEY_BYTES_MAX` bytes, in the partition of the request's `userId`. */
  readonly userId: string;
  /** The version of the record; 0: the key has no record. */
  readonly version: number;
}
