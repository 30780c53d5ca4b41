/**
 * The library: limiters for one process, which decide exactly as the cluster does.
 *
 * @example
 * import { RateLimiter } from 'quorate';
 * const limiter = new RateLimiter(3, 10_000);
 * limiter.allow('ada', Date.now()); // true
 */
export { InvalidLimiterArgumentError } from './limiter/library/arguments.ts';
export { FixedWindow } from './limiter/library/fixed-window.ts';
export { LeakyBucket, type LeakyBucketOptions } from './limiter/library/leaky-bucket.ts';
export { SlidingWindowCounter } from './limiter/library/sliding-window-counter.ts';
export { SlidingWindowLog } from './limiter/library/sliding-window-log.ts';
export { TokenBucket, type TokenBucketOptions } from './limiter/library/token-bucket.ts';
export { RateLimiter } from './limiter/rate-limiter.ts';
