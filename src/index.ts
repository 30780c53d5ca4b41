/**
 * The library: the sliding-window limiter for one process, exactly as the cluster decides.
 *
 * @example
 * import { RateLimiter } from 'quorate';
 * const limiter = new RateLimiter(3, 10_000);
 * limiter.allow('ada', Date.now()); // true
 */
export { InvalidLimiterArgumentError, RateLimiter } from './limiter/rate-limiter.ts';
