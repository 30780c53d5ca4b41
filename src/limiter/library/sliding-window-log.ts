/** The sliding log as a library, with costs and with granules for long windows, in one process. */

import { GRANULARITY_MILLIS_MAX } from '../../api/rule.ts';
import { requireInteger, requireLimit } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

/**
 * Never grants a user more than `limit` in any rolling window of `windowMillis`. With a granularity, a grant counts as
 * made at the next multiple of it: it counts longer than necessary, and all grants of a granule together take the
 * memory of one. Without one, a grant inside the window takes 8 to 16 bytes.
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
