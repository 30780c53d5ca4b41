/** A rule as everybody sees it, and its bounds. Its check, and the tables of rules, are the limiter's. */

/** The largest `Rule.limit`, but for a `fixedWindow`. */
export const LIMIT_MAX = 1_000_000;
/** That of a `fixedWindow`: a key has one number, however much it is granted. Envoy's field holds no more. */
export const FIXED_LIMIT_MAX = 4_294_967_295;
/** The longest `Rule.windowMillis`: 31 days. */
export const WINDOW_MILLIS_MAX = 2_678_400_000;

/** In written forms the place of a clock in here is its number. */
export const RULE_CLOCKS = ['request', 'cluster'] as const;

/**
 * Where a request's time comes from. `request`: the caller's timestamp, or group time when there is none.
 * `cluster`: always group time.
 */
export type RuleClock = (typeof RULE_CLOCKS)[number];

/** In written forms the place of a meter in here is its number. The first is the default. */
export const RULE_METERS = [
  'slidingLog',
  'slidingCounter',
  'fixedWindow',
  'tokenBucket',
  'leakyBucket',
] as const;

/**
 * How grants are counted against the limit. What each of them promises, to the letter, stands where it is kept
 * (src/limiter/meters/).
 *
 * - `slidingLog`: every grant with its time; no rolling window ever holds more than the limit
 * - `slidingCounter`: two counters, of this aligned window and of the one before, which counts by the share of it that a
 *   rolling window still reaches; approximate
 * - `fixedWindow`: one counter per aligned window: a quota that begins anew
 * - `tokenBucket`: starts with `burst`, refilled with `limit` per window
 * - `leakyBucket`: the same seen as a queue: what came in beyond `burst` waits its turn, up to `queue`
 */
export type RuleMeter = (typeof RULE_METERS)[number];

/** The coarsest `Rule.granularityMillis`: a day. */
export const GRANULARITY_MILLIS_MAX = 86_400_000;

export interface Rule {
  /** 1 to `RULE_ID_BYTES_MAX` bytes. Recorded grants belong to the id, not to the position in the table. */
  readonly id: string;
  /**
   * The id of the rule whose window this is; `id` begins with it and a `/`. A new window starts with what the other windows of
   * its rule know of a key. Absent: the rule has one window, and both have the same id.
   */
  readonly of?: string;
  /** Cost granted per key and window, as the meter counts it: 0 (deny all) to `limitMaxOf(meter)`. */
  readonly limit: number;
  /** Length of the window: 1 to `WINDOW_MILLIS_MAX`. Of a bucket: how long `limit` takes to flow. */
  readonly windowMillis: number;
  readonly clock: RuleClock;
  /** Absent: `slidingLog`. */
  readonly meter?: RuleMeter;
  /**
   * Of a `slidingLog`: grants are counted as made at the next multiple of this, so that a key remembers one number for
   * all of them: up to the window, and to `GRANULARITY_MILLIS_MAX`. Absent: 1, every grant at its own millisecond.
   */
  readonly granularityMillis?: number;
  /** Of a `fixedWindow`: windows are calendar months in UTC instead, and `windowMillis` is 31 days. */
  readonly calendar?: 'month';
  /** Of a bucket: what may be granted at once, 1 to `LIMIT_MAX`. Absent: as much as `limit`. */
  readonly burst?: number;
  /** Of a `leakyBucket`: cost beyond `burst` that is granted and told to wait. With `burst` up to `LIMIT_MAX`; absent: 0. */
  readonly queue?: number;
}

/** The largest `Rule.limit` that a meter counts. */
export function limitMaxOf(meter: RuleMeter | undefined): number {
  return meter === 'fixedWindow' ? FIXED_LIMIT_MAX : LIMIT_MAX;
}

/** The most that a key to which nothing counts may be granted at once. */
export function capacityOf({ limit, burst, queue }: Rule): number {
  return limit === 0 ? 0 : (burst ?? limit) + (queue ?? 0);
}
