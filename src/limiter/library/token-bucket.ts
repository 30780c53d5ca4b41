/** A token bucket as a library, in one process. */

import { LIMIT_MAX } from '../../api/rule.ts';
import { requireInteger } from './arguments.ts';
import { flowOf } from './flow.ts';
import { LocalLimiter } from './local-limiter.ts';

export interface TokenBucketOptions {
  /** Tokens of a full bucket, with which each user starts: 1 to 1_000_000. */
  readonly capacity: number;
  /** Tokens that flow in, evenly: an integer up to 1_000_000, or a multiple of 0.001 up to 1_000. */
  readonly refillPerSecond: number;
}

/**
 * Grants each user at most `capacity` and what flowed in, in any interval: exactly, and never more. One row of memory per
 * user.
 *
 * @example
 * const bucket = new TokenBucket({ capacity: 4, refillPerSecond: 2 });
 * bucket.allow('ada', 0, 4); // true
 * bucket.allow('ada', 499); // false
 * bucket.allow('ada', 500); // true
 */
export class TokenBucket {
  readonly #local: LocalLimiter;

  /** @throws InvalidLimiterArgumentError */
  constructor({ capacity, refillPerSecond }: TokenBucketOptions) {
    requireInteger('capacity', capacity, 1, LIMIT_MAX);
    this.#local = new LocalLimiter({
      ...flowOf('refillPerSecond', refillPerSecond),
      meter: 'tokenBucket',
      burst: capacity,
    });
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
