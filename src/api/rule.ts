/** A rule as everybody sees it, and its bounds. Its check, and the tables of rules, are the limiter's. */

/** The largest `Rule.limit`. */
export const LIMIT_MAX = 1_000_000;
/** The longest `Rule.windowMillis`: 31 days. */
export const WINDOW_MILLIS_MAX = 2_678_400_000;

/** In written forms the place of a clock in here is its number. */
export const RULE_CLOCKS = ['request', 'cluster'] as const;

/**
 * Where a request's time comes from. `request`: the caller's timestamp, or group time when there is none.
 * `cluster`: always group time.
 */
export type RuleClock = (typeof RULE_CLOCKS)[number];

export interface Rule {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. Recorded grants belong to the id, not to the position in the table. */
  readonly id: string;
  /** Cost granted per key in any rolling window: 0 (deny all) to `LIMIT_MAX`. */
  readonly limit: number;
  /** Length of the rolling window: 1 to `WINDOW_MILLIS_MAX`. */
  readonly windowMillis: number;
  readonly clock: RuleClock;
}
