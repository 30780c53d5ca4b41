/** A sliding window counter as a library: two numbers per user, in one process. */

import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../api/rule.ts';
import { requireInteger } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

/**
 * Grants each user about `maxRequests` in any rolling window of `windowMillis`: this aligned window counts in full, the one
 * before by the share of it that a rolling window still reaches, rounded down. Never more than `maxRequests` in an aligned
 * window, and up to twice that in a rolling one, if all of the window before came at its end. One row of memory per user.
 *
 * @example
 * const limiter = new SlidingWindowCounter(7, 60_000);
 * limiter.allow('ada', 30_000, 5); // true
 * limiter.allow('ada', 77_000, 3); // true
 * limiter.allow('ada', 78_000); // true: 3 + 70 % of 5 is 6.5, which counts as 6
 * limiter.allow('ada', 78_000); // false
 */
export class SlidingWindowCounter {
  readonly #local: LocalLimiter;

  /**
   * @param maxRequests 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(maxRequests: number, windowMillis: number) {
    requireInteger('maxRequests', maxRequests, 0, LIMIT_MAX);
    requireInteger('windowMillis', windowMillis, 1, WINDOW_MILLIS_MAX);
    this.#local = new LocalLimiter({ limit: maxRequests, windowMillis, meter: 'slidingCounter' });
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
