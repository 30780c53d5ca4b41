/** The fixed window as a library: a quota that starts anew with each window, in one process. */

import { requireLimit } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

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
