/**
 * The library: limiters for one process, which decide exactly as the cluster does.
 *
 * @example
 * import { RateLimiter } from 'quorate';
 * const limiter = new RateLimiter(3, 10_000);
 * limiter.allow('ada', Date.now()); // true
 */
export { InvalidLimiterArgumentError } from './limiter/library/local-limiter.ts';
export { FixedWindow, SlidingWindowCounter, SlidingWindowLog } from './limiter/library/window-limiters.ts';
export {
  LeakyBucket,
  type LeakyBucketOptions,
  TokenBucket,
  type TokenBucketOptions,
} from './limiter/library/bucket-limiters.ts';
export { RateLimiter } from './limiter/rate-limiter.ts';
