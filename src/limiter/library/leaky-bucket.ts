/** A leaky bucket as a library: a queue that is let out at a fixed rate, in one process. */

import { LIMIT_MAX } from '../../api/rule.ts';
import { requireInteger, requireLimit } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

export interface LeakyBucketOptions {
  /** What goes on at once, of a user whose bucket is empty: 1 to 1_000_000. Left out: as much as `limit`. */
  readonly burst?: number;
  /** What is taken in beyond that, and waits its turn: 0 to 1_000_000 less `burst`. Left out: 0, nothing waits. */
  readonly queue?: number;
}

/**
 * Takes in what fits and says when it flows out: those who wait go on at the rate of `limit` per `windowMillis`, one at a time.
 * What does not fit is dropped. One row of memory per user.
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
   * @param limit what flows out, evenly, per `windowMillis`: 0 (drop all) to 1_000_000
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
   * Takes in a request if it fits, and says in how many milliseconds it may go on; undefined: it is dropped, and changes
   * nothing. The arguments are those of `allow`.
   *
   * @throws InvalidLimiterArgumentError
   */
  waitMillis(userId: string, timestampMillis: number, cost = 1): number | undefined {
    const { allowed, waitMillis = 0 } = this.decide(userId, timestampMillis, cost);
    return allowed ? waitMillis : undefined;
  }
}
