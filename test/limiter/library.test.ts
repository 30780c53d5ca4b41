/** The classes of the library, with the examples of the requirements. */
import { describe, expect, it } from 'vitest';
import {
  FixedWindow,
  InvalidLimiterArgumentError,
  LeakyBucket,
  SlidingWindowCounter,
  SlidingWindowLog,
  TokenBucket,
} from '../../src/index.ts';

describe('the library', () => {
  it('has a token bucket of size 4, refilled with 2 per second (004-04, 001-15)', () => {
    const bucket = new TokenBucket(2, 1_000, { burst: 4 });
    expect([0, 0, 0, 0, 0].map((t) => bucket.allow('ada', t))).toEqual([true, true, true, true, false]);
    expect([499, 500, 500].map((t) => bucket.allow('ada', t))).toEqual([false, true, false]);
    expect([bucket.allow('ada', 2_500, 5), bucket.allow('ada', 2_500, 4)]).toEqual([false, true]);
    const slow = new TokenBucket(1, 10_000);
    expect([0, 9_999, 10_000].map((t) => slow.allow('ada', t))).toEqual([true, false, true]);
  });

  it('has a leaky bucket that queues requests, and drops those that do not fit (004-05, 004-10)', () => {
    const bucket = new LeakyBucket(2, 1_000, { burst: 1, queue: 2 });
    expect([0, 0, 0, 0].map((t) => bucket.waitMillis('ada', t))).toEqual([0, 500, 1_000, undefined]);
    expect([499, 500].map((t) => bucket.allow('ada', t))).toEqual([false, true]);
    expect(bucket.waitMillis('bob', 500, 3)).toBe(1_000);
    const narrow = new LeakyBucket(1_000_000, 1_000, { burst: 1 });
    expect([0, 0, 1].map((t) => narrow.waitMillis('ada', t))).toEqual([0, undefined, 0]);
  });

  it('has a fixed window that begins with each full minute (004-06)', () => {
    const quota = new FixedWindow(2, 60_000);
    expect([59_998, 59_999, 59_999, 60_000].map((t) => quota.allow('ada', t))).toEqual([
      true,
      true,
      false,
      true,
    ]);
  });

  it('has a sliding window counter: with 5 in the last window and 3 in this one, 6 of 7 are spent and one more is allowed (004-08)', () => {
    const limiter = new SlidingWindowCounter(7, 60_000);
    expect([limiter.allow('ada', 30_000, 5), limiter.allow('ada', 77_000, 3)]).toEqual([true, true]);
    expect([78_000, 78_000].map((t) => limiter.allow('ada', t))).toEqual([true, false]);
  });

  it('has a sliding window log with costs and granules (004-07, 003-10)', () => {
    const limiter = new SlidingWindowLog(3, 10_000, { granularityMillis: 1_000 });
    expect([limiter.allow('ada', 1, 2), limiter.allow('ada', 1, 2)]).toEqual([true, false]);
    expect(limiter.allow('ada', 2)).toBe(true);
    expect([10_999, 11_000].map((t) => limiter.allow('ada', t))).toEqual([false, true]);
    const exact = new SlidingWindowLog(1, 10_000);
    expect([1, 10_000, 10_001].map((t) => exact.allow('ada', t))).toEqual([true, false, true]);
  });

  it('keeps no grant for longer than its window, even if very many are made', () => {
    const log = new SlidingWindowLog(1_000_000, 1);
    for (let i = 0; i < 5_000; i += 1) expect(log.allow('ada', 1_700_000_000_000 + i, 1_000_000)).toBe(true);
    expect(log.allow('ada', 1_700_000_004_999)).toBe(false);
  });

  it('has buckets with the defaults of rules: a burst of the limit, no queue, and no grants under a limit of 0', () => {
    const bucket = new TokenBucket(2, 1_000);
    expect([0, 0, 0, 500].map((t) => bucket.allow('ada', t))).toEqual([true, true, false, true]);
    const leaky = new LeakyBucket(2, 1_000);
    expect([0, 0, 0, 500].map((t) => leaky.waitMillis('ada', t))).toEqual([0, 0, undefined, 0]);
    for (const closed of [new TokenBucket(0, 1_000, { burst: 3 }), new LeakyBucket(0, 1_000, { queue: 3 })])
      expect([0, 60_000].map((t) => closed.allow('ada', t))).toEqual([false, false]);
  });

  it('forgets users whose grants no longer count', () => {
    for (const [limiter, idleAt] of [
      [new TokenBucket(2, 1_000, { burst: 4 }), 600],
      [new LeakyBucket(2, 1_000, { burst: 1, queue: 3 }), 600],
      [new FixedWindow(4, 1_000), 1_000],
      [new SlidingWindowCounter(4, 1_000), 2_000],
      [new SlidingWindowLog(4, 1_000, { granularityMillis: 100 }), 1_100],
    ] as const) {
      limiter.allow('ada', 100);
      limiter.allow('bob', 5_000);
      expect([limiter.evictIdle(idleAt - 1), limiter.evictIdle(idleAt), limiter.userCount]).toEqual([
        0, 1, 1,
      ]);
    }
  });

  it('names the argument that is out of bounds, and its bound', () => {
    expect(() => new TokenBucket(1, 1_000, { burst: 0 })).toThrow(InvalidLimiterArgumentError);
    expect(() => new TokenBucket(1_000_001, 1_000)).toThrow(
      'limit must be an integer from 0 to 1000000, but is 1000001',
    );
    expect(() => new LeakyBucket(1 / 3, 1_000)).toThrow(/^limit must be/);
    expect(() => new LeakyBucket(2, 1_000, { burst: 1, queue: 1_000_000 })).toThrow(
      'queue must be an integer from 0 to 999999, but is 1000000',
    );
    expect(() => new LeakyBucket(2, 1_000, { queue: 999_999 })).toThrow(/^queue must be .* to 999998,/);
    expect(() => new FixedWindow(1, 0)).toThrow(/^windowMillis must be/);
    expect(() => new SlidingWindowLog(1, 10, { granularityMillis: 11 })).toThrow(
      'granularityMillis must be an integer from 1 to 10, but is 11',
    );
    expect(() => new FixedWindow(1, 10).allow('ada', 0, 0)).toThrow(/^cost must be/);
    expect(() => new FixedWindow(1, 10).allow('', 0)).toThrow(
      'userId must be text of 1 to 256 bytes, but is empty',
    );
  });
});
