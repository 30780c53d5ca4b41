/** A fixed window as a library: a quota that begins anew, in one process. */

import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { requireInteger } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

/**
 * Grants each user at most `maxRequests` in every window that begins at a multiple of `windowMillis` since 1970, in UTC.
 * Around the end of a window twice that may be granted within a moment. One row of memory per user.
 *
 * @example
 * const quota = new FixedWindow(2, 60_000);
 * quota.allow('ada', 59_999, 2); // true
 * quota.allow('ada', 59_999); // false
 * quota.allow('ada', 60_000, 2); // true: another minute
 */
export class FixedWindow {
  readonly #local: LocalLimiter;

  /**
   * @param maxRequests 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(maxRequests: number, windowMillis: number) {
    requireInteger('maxRequests', maxRequests, 0, LIMIT_MAX);
    requireInteger('windowMillis', windowMillis, 1, WINDOW_MILLIS_MAX);
    this.#local = new LocalLimiter({ limit: maxRequests, windowMillis, meter: 'fixedWindow' });
  }

  /**
   * Decides one request and records it when granted; a denied one changes nothing.
   *
   * @param userId 1 to 256 bytes
   * @param timestampMillis 0 to 8_640_000_000_000_000; one below the user's newest grant is decided at that
   * @param cost 1 to 1_000_000
   * @throws InvalidLimiterArgumentError
   */
  allow(userId: string, timestampMillis: number, cost = 1): boolean {
    return this.#local.allow(userId, timestampMillis, cost);
  }

  /** Number of users of whom something is remembered. */
  get userCount(): number {
    return this.#local.userCount;
  }

  /**
   * Forgets users to whom nothing counts any more at `beforeMillis`, and returns how many. O(users).
   *
   * @param beforeMillis 0 to 8_640_000_000_000_000; should not be ahead of the timestamps still to come
   * @throws InvalidLimiterArgumentError
   */
  evictIdle(beforeMillis: number): number {
    return this.#local.evictIdle(beforeMillis);
  }
}
