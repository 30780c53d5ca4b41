/**
 * Windows as a library, in one process: the fixed window (a quota that starts anew with each window), the sliding
 * window counter (two numbers per user), and the sliding log, with costs and with granules for long windows.
 */

import { LocalLimiter, requireInteger, requireLimit } from './local-limiter.ts';
import { GRANULARITY_MILLIS_MAX } from '../../api/rule.ts';

/**
 * Grants each user at most `limit` in every window that begins at a multiple of `windowMillis` since 1970, in UTC.
 * Around the end of a window up to twice that can be granted within a moment. One row of memory per user.
 *
 * @example
 * const quota = new FixedWindow(2, 60_000);
 * quota.allow('ada', 59_999, 2); // true
 * quota.allow('ada', 59_999); // false
 * quota.allow('ada', 60_000, 2); // true: the next minute
 */
export class FixedWindow extends LocalLimiter {
  /**
   * @param limit 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number) {
    requireLimit(limit, windowMillis);
    super({ limit, windowMillis, meter: 'fixedWindow' });
  }
}

/**
 * Grants each user about `limit` in any rolling window of `windowMillis`. The current aligned window counts in full;
 * the one before it counts by the fraction that a rolling window still covers, rounded down. Never more than `limit` in
 * an aligned window. A rolling window can hold up to twice that, if everything in the window before was granted at its
 * end. One row of memory per user.
 *
 * @example
 * const limiter = new SlidingWindowCounter(7, 60_000);
 * limiter.allow('ada', 30_000, 5); // true
 * limiter.allow('ada', 77_000, 3); // true
 * limiter.allow('ada', 78_000); // true: 3 + 70 % of 5 is 6.5, which counts as 6
 * limiter.allow('ada', 78_000); // false
 */
export class SlidingWindowCounter extends LocalLimiter {
  /**
   * @param limit 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number) {
    requireLimit(limit, windowMillis);
    super({ limit, windowMillis, meter: 'slidingCounter' });
  }
}

/**
 * Never grants a user more than `limit` in any rolling window of `windowMillis`. With a granularity, a grant counts as
 * made at the next multiple of it: it counts longer than necessary, and all grants of a granule together take the
 * memory of one. Without one, each millisecond of the window with a grant takes 4 to 8 bytes, or 8 to 16 while the user
 * has a millisecond with more than 1 granted.
 *
 * @example
 * const limiter = new SlidingWindowLog(1_000, 3_600_000, { granularityMillis: 60_000 }); // at most 62 numbers per user
 * limiter.allow('ada', 0, 1_000); // true
 * limiter.allow('ada', 3_599_999); // false
 * limiter.allow('ada', 3_600_000); // true
 */
export class SlidingWindowLog extends LocalLimiter {
  /**
   * @param limit 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @param options `granularityMillis`: 1 (the default) to the window, at most a day
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number, options: { readonly granularityMillis?: number } = {}) {
    const { granularityMillis = 1 } = options;
    requireLimit(limit, windowMillis);
    const coarsest = Math.min(windowMillis, GRANULARITY_MILLIS_MAX);
    requireInteger('granularityMillis', granularityMillis, 1, coarsest);
    const granules = granularityMillis > 1 ? { granularityMillis } : {};
    super({ limit, windowMillis, ...granules });
  }
}
