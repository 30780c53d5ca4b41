/** A leaky bucket as a library: a queue that is let out at a fixed rate, in one process. */

import { LIMIT_MAX } from '../../api/rule.ts';
import { requireInteger } from './arguments.ts';
import { flowOf } from './flow.ts';
import { LocalLimiter } from './local-limiter.ts';

export interface LeakyBucketOptions {
  /** How much each user may have in the bucket: 1 to 1_000_000. */
  readonly capacity: number;
  /** What flows out, evenly: an integer up to 1_000_000, or a multiple of 0.001 up to 1_000. */
  readonly leakPerSecond: number;
}

/**
 * Takes in what fits and says when it flows out: those who go on then do so at `leakPerSecond`, one at a time. What does not
 * fit is dropped. One row of memory per user.
 *
 * @example
 * const bucket = new LeakyBucket({ capacity: 3, leakPerSecond: 2 });
 * bucket.waitMillis('ada', 0); // 0: at once
 * bucket.waitMillis('ada', 0); // 500
 * bucket.waitMillis('ada', 0); // 1000
 * bucket.waitMillis('ada', 0); // undefined: dropped
 */
export class LeakyBucket extends LocalLimiter {
  /** @throws InvalidLimiterArgumentError */
  constructor({ capacity, leakPerSecond }: LeakyBucketOptions) {
    requireInteger('capacity', capacity, 1, LIMIT_MAX);
    const queue = capacity > 1 ? { queue: capacity - 1 } : {};
    super({
      ...flowOf('leakPerSecond', leakPerSecond),
      meter: 'leakyBucket',
      burst: 1,
      ...queue,
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
