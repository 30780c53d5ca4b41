/**
 * The sliding log as a library: one limit, one process, no cluster. It decides like a rule whose `clock` is `request`:
 * the time is that of the request. But the caller chooses when idle users are forgotten. The other meters are in
 * `library/`.
 */

import { LocalLimiter, requireLimit } from './library/local-limiter.ts';

/**
 * Grants each user at most `limit` requests in any rolling window of `windowMillis`.
 *
 * A grant that is exactly one window old no longer counts. A denied request never counts. Requests with equal
 * timestamps are separate requests. Amortised O(1) time per request; 4 to 8 bytes per grant inside the window, or up to
 * 16 while a user has several grants at one time.
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
   * Decides one request and records it if it is granted.
   *
   * @param userId 1 to 256 bytes of UTF-8
   * @param timestampMillis 0 to 8_640_000_000_000_000. It should not decrease for a user; a timestamp below the user's
   * newest grant is decided at the time of that grant.
   * @throws InvalidLimiterArgumentError
   */
  allow(userId: string, timestampMillis: number): boolean {
    return this.#local.allow(userId, timestampMillis, 1);
  }

  /**
   * Forgets users whose grants have all left the window at `beforeMillis`, and returns how many. O(users). Call it when
   * memory matters. Afterwards, a request of a user without recorded grants is decided no earlier than the time at
   * which all forgotten grants are out of the window. A late timestamp therefore cannot get around the limit.
   *
   * @param beforeMillis 0 to 8_640_000_000_000_000; should not be ahead of the timestamps still to come
   * @throws InvalidLimiterArgumentError
   */
  evictIdle(beforeMillis: number): number {
    return this.#local.evictIdle(beforeMillis);
  }
}
