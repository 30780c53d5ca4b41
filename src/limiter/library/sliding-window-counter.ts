/** The sliding window counter as a library: two numbers per user, in one process. */

import { requireLimit } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

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
