/** The promise of each meter, with grants that keep it and grants that break it. */
import { expect, test } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { brokenPromise } from './guarantees.ts';

const RULE: Rule = { id: 'r', limit: 10, windowMillis: 1_000, clock: 'cluster' };
const FLOW = { windowMillis: 1_000, roundingMillis: 0 };

function broken(rule: Partial<Rule>, ...grants: readonly (readonly [number, number])[]): boolean {
  const counted = grants.map(([timeMillis, cost]) => ({ timeMillis, cost }));
  return brokenPromise({ ...RULE, ...rule }, counted, FLOW) !== undefined;
}

test('a bucket: its capacity at once, then as much as has drained, even after a long pause', () => {
  const bucket = { meter: 'tokenBucket', burst: 4 } as const;
  expect(broken(bucket, [0, 4], [100, 1], [200, 1])).toBe(false);
  expect(broken(bucket, [0, 4], [99, 1])).toBe(true);
  expect(broken(bucket, [0, 1], [5_000, 4], [5_099, 1])).toBe(true);
  expect(broken({ meter: 'leakyBucket', burst: 1, queue: 3 }, [0, 4], [99, 1])).toBe(true);
});

test('a fixed window: the limit in each window, and as much again a millisecond later', () => {
  expect(broken({ meter: 'fixedWindow' }, [999, 10], [1_000, 10])).toBe(false);
  expect(broken({ meter: 'fixedWindow' }, [1_000, 6], [1_999, 5])).toBe(true);
});

test('a sliding counter: as much as no longer counts of the previous window', () => {
  expect(broken({ meter: 'slidingCounter' }, [500, 10], [1_500, 5])).toBe(false);
  expect(broken({ meter: 'slidingCounter' }, [500, 10], [1_500, 6])).toBe(true);
  expect(broken({ meter: 'slidingCounter' }, [1_000, 11])).toBe(true);
});
