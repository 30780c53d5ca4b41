/**
 * Buckets as a library, in one process: the token bucket, and the leaky bucket, a queue that drains at a fixed rate.
 */

import { LIMIT_MAX } from '../../api/rule.ts';
import { LocalLimiter, requireInteger, requireLimit } from './local-limiter.ts';

/** The optional size of a token bucket. */
export interface TokenBucketOptions {
  /** Tokens of a full bucket, which each user starts with: 1 to 1_000_000. Default: `limit`. */
  readonly burst?: number;
}

/**
 * Grants each user, in any interval, at most `burst` plus the tokens that flow in during it; exact. One row of memory
 * per user.
 *
 * @example
 * const bucket = new TokenBucket(2, 1_000, { burst: 4 });
 * bucket.allow('ada', 0, 4); // true
 * bucket.allow('ada', 499); // false
 * bucket.allow('ada', 500); // true
 */
export class TokenBucket extends LocalLimiter {
  /**
   * @param limit tokens that flow in, evenly, per `windowMillis`: 0 (deny all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number, options: TokenBucketOptions = {}) {
    requireLimit(limit, windowMillis);
    const { burst } = options;
    if (burst !== undefined) requireInteger('burst', burst, 1, LIMIT_MAX);
    super({ limit, windowMillis, meter: 'tokenBucket', ...(burst !== undefined && { burst }) });
  }
}

/** The optional sizes of a leaky bucket. */
export interface LeakyBucketOptions {
  /** Cost that proceeds at once if the user's bucket is empty: 1 to 1_000_000. Default: `limit`. */
  readonly burst?: number;
  /** Cost accepted beyond that, which has to wait: 0 to 1_000_000 - `burst`. Default: 0, nothing waits. */
  readonly queue?: number;
}

/**
 * Accepts requests that fit and says how long each has to wait; they proceed one at a time, at `limit` per
 * `windowMillis`. Requests that do not fit are dropped. One row of memory per user.
 *
 * @example
 * const bucket = new LeakyBucket(2, 1_000, { burst: 1, queue: 2 });
 * bucket.waitMillis('ada', 0); // 0: at once
 * bucket.waitMillis('ada', 0); // 500
 * bucket.waitMillis('ada', 0); // 1000
 * bucket.waitMillis('ada', 0); // undefined: dropped
 */
export class LeakyBucket extends LocalLimiter {
  /**
   * @param limit cost that drains, evenly, per `windowMillis`: 0 (drop all) to 1_000_000
   * @param windowMillis 1 to 2_678_400_000 (31 days)
   * @throws InvalidLimiterArgumentError
   */
  constructor(limit: number, windowMillis: number, options: LeakyBucketOptions = {}) {
    requireLimit(limit, windowMillis);
    const { burst, queue = 0 } = options;
    if (burst !== undefined) requireInteger('burst', burst, 1, LIMIT_MAX);
    requireInteger('queue', queue, 0, LIMIT_MAX - (burst ?? limit));
    super({
      limit,
      windowMillis,
      meter: 'leakyBucket',
      ...(burst !== undefined && { burst }),
      ...(queue > 0 && { queue }),
    });
  }

  /**
   * Accepts a request if it fits, and returns how many milliseconds it has to wait. Returns undefined if it is dropped,
   * which changes nothing. The arguments are those of `allow`.
   *
   * @throws InvalidLimiterArgumentError
   */
  waitMillis(userId: string, timestampMillis: number, cost = 1): number | undefined {
    const { allowed, waitMillis = 0 } = this.decide(userId, timestampMillis, cost);
    return allowed ? waitMillis : undefined;
  }
}
