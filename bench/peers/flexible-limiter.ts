/**
 * `rate-limiter-flexible` on Redis as it is commonly used: one counter for each user and fixed window. That is less
 * work than a sliding log, and up to twice the limit can pass around the end of a window.
 */
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { type Limiter, LOAD_RULES, type LoadRule, type LoadRuleId } from '../workloads.ts';

/** Makes the limiter. @param backends the port of Redis on loopback */
export function flexibleLimiter([port]: readonly string[]): Limiter {
  const storeClient = new Redis({ host: '127.0.0.1', port: Number(port) });
  const limiterOf = ({ limit, windowMillis }: LoadRule, keyPrefix: string): RateLimiterRedis =>
    new RateLimiterRedis({ storeClient, keyPrefix, points: limit, duration: windowMillis / 1_000 });
  const limiters: Readonly<Record<LoadRuleId, RateLimiterRedis>> = {
    open: limiterOf(LOAD_RULES.open, 'open'),
    spent: limiterOf(LOAD_RULES.spent, 'spent'),
    small: limiterOf(LOAD_RULES.small, 'small'),
  };
  return async (key, rule) => {
    try {
      await limiters[rule].consume(key);
      return true;
    } catch (error) {
      if (error instanceof RateLimiterRes) return false;
      throw error;
    }
  };
}
