/**
 * The sliding log as a library: one limit, one process, no cluster. It decides as a rule with the `request` clock does;
 * only when a user is forgotten is for its caller to say. Other meters are in `library/`.
 */

import { requireLimit } from './library/arguments.ts';
import { LocalLimiter } from './library/local-limiter.ts';

/**
 * Grants each user at most `limit` requests in any rolling window of `windowMillis`.
 *
 * A grant exactly one window old no longer counts; a denied request never counts; equal timestamps are
 * separate requests. Amortised O(1) per request, 8 to 16 bytes per live grant.
 *
 * @example
 * const limiter = new RateLimiter(3, 10_000);
 * limiter.allow('ada', 0); // true
 * limiter.allow('ada', 1_000); // true
 * limiter.allow('ada', 2_000); // true
 * limiter.allow('ada', 3_000); // false
 * limiter.allow('ada', 11_000); // true: the grants at 0 and 1000 have left the window
 */
export class RateLimiter {
  readonly limit: number;
  readonly windowMillis: number;
  readonly #local: LocalLimiter;

  /**
   * @param limit 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number) {
    requireLimit(limit, windowMillis);
    this.limit = limit;
    this.windowMillis = windowMillis;
    this.#local = new LocalLimiter({ limit, windowMillis });
  }

  /** Number of users with recorded grants. */
  get userCount(): number {
    return this.#local.userCount;
  }

  /**
   * Decides one request and records it when granted.
   *
   * @param userId 1 to 256 bytes
   * @param timestampMillis 0 to 8_640_000_000_000_000. Should not decrease per user; one below the user's newest
   * grant is decided at the time of that grant.
   * @throws InvalidLimiterArgumentError
   */
  allow(userId: string, timestampMillis: number): boolean {
    return this.#local.allow(userId, timestampMillis, 1);
  }

  /**
   * Forgets users whose grants have all left the window at `beforeMillis`, and returns how many. Call it when
   * memory matters; O(users). Afterwards a request of a user without recorded grants is decided at
   * a time at which all that was forgotten is out of the window, so a late timestamp cannot get around it.
   *
   * @param beforeMillis 0 to 8_640_000_000_000_000; should not be ahead of the timestamps still to come
   * @throws InvalidLimiterArgumentError
   */
  evictIdle(beforeMillis: number): number {
    return this.#local.evictIdle(beforeMillis);
  }
}
