/** `RateLimiter`, compared with a naive list of grants. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidLimiterArgumentError } from '../../src/limiter/library/local-limiter.ts';
import { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import { densestWindow } from './naive.ts';

describe('RateLimiter', () => {
  it('decides the example of the problem statement', () => {
    const limiter = new RateLimiter(3, 10_000);
    const answers = [0, 1_000, 2_000, 3_000, 11_000].map((t) => limiter.allow('ada', t));
    expect(answers).toEqual([true, true, true, false, true]);
  });

  it('frees the cost of a grant exactly one window later', () => {
    const limiter = new RateLimiter(1, 10_000);
    expect(limiter.allow('ada', 0)).toBe(true);
    expect(limiter.allow('ada', 9_999)).toBe(false);
    expect(limiter.allow('ada', 10_000)).toBe(true);
  });

  it('counts equal timestamps separately and users apart from each other', () => {
    const limiter = new RateLimiter(2, 1_000);
    expect([5, 5, 5].map((t) => limiter.allow('ada', t))).toEqual([true, true, false]);
    expect(limiter.allow('bob', 5)).toBe(true);
    expect(limiter.userCount).toBe(2);
  });

  it('does not let a denied request count, even one from the far future', () => {
    const limiter = new RateLimiter(1, 1_000);
    limiter.allow('ada', 0);
    for (let t = 1; t < 1_000; t += 1) expect(limiter.allow('ada', t)).toBe(false);
    expect(limiter.allow('ada', 1_000)).toBe(true);
    const closed = new RateLimiter(0, 1_000);
    expect(closed.allow('ada', 8_640_000_000_000_000)).toBe(false);
    expect(closed.userCount).toBe(0);
  });

  it('decides an earlier timestamp at the time of the newest grant', () => {
    const limiter = new RateLimiter(2, 1_000);
    expect([5_000, 100, 200, 6_000].map((t) => limiter.allow('ada', t))).toEqual([true, true, false, true]);
  });

  it('names the argument and its bound when one is out of bounds', () => {
    expect(() => new RateLimiter(-1, 10)).toThrow(/^limit must be an integer from 0 to 1000000/);
    expect(() => new RateLimiter(1.5, 10)).toThrow(InvalidLimiterArgumentError);
    expect(() => new RateLimiter(1, 0)).toThrow(/windowMillis/);
    expect(() => new RateLimiter(1, 2_678_400_001)).toThrow(/2678400000/);
    const limiter = new RateLimiter(1, 10);
    expect(() => limiter.allow('', 0)).toThrow(/userId/);
    expect(() => limiter.allow('x'.repeat(257), 0)).toThrow(/256 bytes/);
    expect(() => limiter.allow('é'.repeat(129), 0)).toThrow(/userId/);
    expect(() => limiter.allow('\ud800', 0)).toThrow(/userId/);
    expect(limiter.allow('é'.repeat(128), 0)).toBe(true);
    expect(() => limiter.allow('ada', NaN)).toThrow(/timestampMillis/);
    expect(() => limiter.allow('ada', -1)).toThrow(RangeError);
  });

  it('forgets idle users on request, and grants no late timestamp in the window of a forgotten grant', () => {
    const limiter = new RateLimiter(1, 1_000);
    limiter.allow('ada', 0);
    limiter.allow('bob', 500);
    expect(limiter.evictIdle(999)).toBe(0);
    expect(limiter.evictIdle(1_000)).toBe(1);
    expect(limiter.userCount).toBe(1);
    expect(limiter.allow('ada', 10)).toBe(true); // decided at 1000
    expect(limiter.allow('ada', 1_999)).toBe(false);
    expect(limiter.allow('ada', 2_000)).toBe(true);
  });

  it('never grants more than the limit in any window, for any timestamps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 30 }),
        fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 80 }),
        (limit, window, timestamps) => {
          const limiter = new RateLimiter(limit, window);
          const grants: { t: number; cost: number }[] = [];
          let newest = 0;
          for (const timestamp of timestamps) {
            if (!limiter.allow('ada', timestamp)) continue;
            newest = Math.max(newest, timestamp);
            grants.push({ t: newest, cost: 1 });
          }
          expect(densestWindow(grants, window)).toBeLessThanOrEqual(limit);
        },
      ),
    );
  });
});
