/** A rule as all parts of the program see it, and its bounds. The limiter checks rules and builds the rule tables. */

/** The largest `Rule.limit` of all meters except `fixedWindow`. */
export const LIMIT_MAX = 1_000_000;
/**
 * The largest `Rule.limit` of a `fixedWindow`, whose state is one number per key. Envoy's field holds no larger
 * number.
 */
export const FIXED_LIMIT_MAX = 4_294_967_295;
/** The longest `Rule.windowMillis`: 31 days. */
export const WINDOW_MILLIS_MAX = 2_678_400_000;

/** The clocks of rules. Encoded rules contain the index in this list, so the order is fixed. */
export const RULE_CLOCKS = ['request', 'cluster'] as const;

/**
 * The source of a request's time. `request`: the caller's timestamp, or group time if there is none. `cluster`:
 * always group time.
 */
export type RuleClock = (typeof RULE_CLOCKS)[number];

/**
 * The meters of rules. Encoded rules contain the index in this list, so the order is fixed. The first is the default.
 */
export const RULE_METERS = [
  'slidingLog',
  'slidingCounter',
  'fixedWindow',
  'tokenBucket',
  'leakyBucket',
] as const;

/**
 * How grants are counted against the limit. Each meter's file in src/limiter/meters/ states its exact guarantee.
 *
 * - `slidingLog`: stores every grant with its time; no rolling window ever contains more than the limit
 * - `slidingCounter`: two counters, for the current and the previous aligned window. The previous one counts by the
 *   fraction that a rolling window still covers. Approximate.
 * - `fixedWindow`: one counter per aligned window: a quota that starts again in each window
 * - `tokenBucket`: starts with `burst` tokens and is refilled with `limit` tokens per window
 * - `leakyBucket`: the same bucket as a queue: cost beyond `burst` waits, up to `queue`
 */
export type RuleMeter = (typeof RULE_METERS)[number];

/** The largest `Rule.granularityMillis`: a day. */
export const GRANULARITY_MILLIS_MAX = 86_400_000;

/** One rule of a rule table. */
export interface Rule {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. Recorded grants belong to the id, not to the position in the table. */
  readonly id: string;
  /**
   * Only for a rule with several windows: the id of the rule that this window belongs to. `id` is then this id, a
   * `/`, and the name of the window. A window that is added later starts with the usage that the other windows of the
   * rule know for a key. Absent: the rule has one window.
   */
  readonly of?: string;
  /** The cost granted per key and window, as the meter counts it: 0 (deny all) to `limitMaxOf(meter)`. */
  readonly limit: number;
  /** The length of the window, 1 to `WINDOW_MILLIS_MAX`. For a bucket: the time in which `limit` flows. */
  readonly windowMillis: number;
  readonly clock: RuleClock;
  /** Absent: `slidingLog`. */
  readonly meter?: RuleMeter;
  /**
   * Only for a `slidingLog`: grants are counted as if made at the next multiple of this, so a key stores one number
   * for all of them. At most the window and `GRANULARITY_MILLIS_MAX`. Absent: 1, every grant counts at its own
   * millisecond.
   */
  readonly granularityMillis?: number;
  /** Only for a `fixedWindow`: windows are calendar months in UTC, and `windowMillis` is 31 days. */
  readonly calendar?: 'month';
  /** Only for a bucket: what may be granted at once, 1 to `LIMIT_MAX`. Absent: the same as `limit`. */
  readonly burst?: number;
  /**
   * Only for a `leakyBucket`: cost beyond `burst` that is granted with a wait. `burst` plus `queue` is at most
   * `LIMIT_MAX`. Absent: 0.
   */
  readonly queue?: number;
}

/** The largest `Rule.limit` of a meter. */
export function limitMaxOf(meter: RuleMeter | undefined): number {
  return meter === 'fixedWindow' ? FIXED_LIMIT_MAX : LIMIT_MAX;
}

/** The most that may be granted at once to a key without any usage. */
export function capacityOf({ limit, burst, queue }: Rule): number {
  return limit === 0 ? 0 : (burst ?? limit) + (queue ?? 0);
}
