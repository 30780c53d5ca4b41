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
export class TokenBucket extends LocalLimiter {
  /** @throws InvalidLimiterArgumentError */
  constructor({ capacity, refillPerSecond }: TokenBucketOptions) {
    requireInteger('capacity', capacity, 1, LIMIT_MAX);
    super({
      ...flowOf('refillPerSecond', refillPerSecond),
      meter: 'tokenBucket',
      burst: capacity,
    });
  }
}
