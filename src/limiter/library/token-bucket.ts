/** The token bucket as a library, in one process. */

import { LIMIT_MAX } from '../../api/rule.ts';
import { requireInteger, requireLimit } from './arguments.ts';
import { LocalLimiter } from './local-limiter.ts';

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
