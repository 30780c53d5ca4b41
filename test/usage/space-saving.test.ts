/** Tests that Space-Saving keeps its bounds on random streams, compared with exact counts. */
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { SpaceSaving } from '../../src/usage/space-saving.ts';
import { cut, sumOf, type TopList } from '../../src/usage/top-keys.ts';

interface Key {
  readonly group: number;
  readonly key: string;
}

function nameOf({ group, key }: Key): string {
  return `${group}:${key}`;
}

function exactly(stream: readonly Key[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const each of stream) counts.set(nameOf(each), (counts.get(nameOf(each)) ?? 0) + 1);
  return counts;
}

function sketchOf(stream: readonly Key[], capacity: number): SpaceSaving {
  const sketch = new SpaceSaving(capacity);
  for (const { group, key } of stream) sketch.add(group, key);
  return sketch;
}

function expectBounds(stream: readonly Key[], capacity: number): void {
  const exact = exactly(stream);
  const sketch = sketchOf(stream, capacity);
  const kept = [...sketch.kept()];
  const bound = stream.length / capacity;
  expect(new Set(kept.map(nameOf)).size).toBe(Math.min(exact.size, capacity));
  expect(sketch.least).toBeLessThanOrEqual(bound);
  expect(kept.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(stream.length);
  for (const each of kept) {
    const count = exact.get(nameOf(each)) ?? 0;
    expect(count).toBeLessThanOrEqual(each.count);
    expect(count).toBeGreaterThanOrEqual(each.count - each.error);
    expect(each.error).toBeLessThanOrEqual(bound);
    exact.delete(nameOf(each));
  }
  for (const count of exact.values()) expect(count).toBeLessThanOrEqual(sketch.least);
}

/** Key i with a frequency of about 1 / (i + 1). */
function zipf(draws: readonly number[], keys: number): Key[] {
  return draws.map((draw) => {
    const rank = Math.floor(keys ** draw) - 1;
    return { group: rank % 2, key: `user-${rank}` };
  });
}

/** Every key once, so that each counter is reused; in between, one key that should be found. */
function churn(length: number, each: number): Key[] {
  return Array.from({ length }, (_, i) => ({ group: 0, key: i % each === 0 ? 'heavy' : `once-${i}` }));
}

/** Each key loses its counter just before it comes back. */
function roundRobin(length: number, keys: number): Key[] {
  return Array.from({ length }, (_, i) => ({ group: 0, key: `user-${i % keys}` }));
}

const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const capacity = fc.integer({ min: 1, max: 20 });

describe('the most frequent keys', () => {
  it('are within their bounds on Zipf streams', () => {
    fc.assert(
      fc.property(
        fc.array(unit, { maxLength: 2_000 }),
        capacity,
        fc.integer({ min: 1, max: 500 }),
        (draws, size, keys) => expectBounds(zipf(draws, keys), size),
      ),
    );
  });

  it('are within their bounds on any stream of few keys', () => {
    const key = fc.record({
      group: fc.integer({ min: 0, max: 2 }),
      key: fc.constantFrom('a', 'b', 'c', '', 'constructor'),
    });
    fc.assert(fc.property(fc.array(key, { maxLength: 300 }), capacity, expectBounds));
  });

  it.each([
    ['every key comes once', churn(5_000, 5_001)],
    ['every tenth key is the same', churn(5_000, 10)],
    ['keys come in turn, one more than there are counters', roundRobin(5_000, 11)],
    [
      'a key that lost its counter comes back',
      [
        ...roundRobin(300, 10),
        ...roundRobin(31, 1).map(() => ({ group: 1, key: 'new' })),
        ...roundRobin(300, 10),
      ],
    ],
    ['the early keys never come back', [...roundRobin(100, 10), ...churn(1_000, 1_001)]],
  ])('are within their bounds when %s', (_, stream) => expectBounds(stream, 10));

  it('include every key above the guaranteed fraction of the stream', () => {
    const kept = [...sketchOf(churn(10_000, 5), 10).kept()].sort((a, b) => b.count - a.count);
    expect(kept[0]).toMatchObject({ key: 'heavy' });
    expect(kept[0]?.count).toBeGreaterThanOrEqual(2_000);
  });

  it('keep their counters in a long tail, which raises their error bound little', () => {
    const sketch = sketchOf(roundRobin(20_000, 1_000), 10);
    expect(sketch.least).toBeLessThan(20_000 / 10 / 2);
    const early = sketchOf([...roundRobin(300, 10), ...churn(1_000, 1_001)], 10);
    expect(new Set([...early.kept()].map(({ key }) => key))).toEqual(
      new Set(roundRobin(10, 10).map(({ key }) => key)),
    );
  });

  it('are exact while there is a counter for every key', () => {
    const kept = [...sketchOf(roundRobin(100, 10), 10).kept()];
    expect(kept.map(({ count, error }) => [count, error])).toEqual(Array.from({ length: 10 }, () => [10, 0]));
  });
});

function listOf(stream: readonly Key[], size: number): TopList {
  const sketch = sketchOf(stream, size);
  const keys = [...sketch.kept()].map(({ group, key, count, error }) => ({
    rule: String(group),
    key,
    count,
    error,
  }));
  return { keys, othersMax: sketch.least };
}

describe('merged lists', () => {
  it('bound the sum of all streams, although each list was cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(unit, { maxLength: 400 }), { maxLength: 4 }),
        capacity,
        fc.integer({ min: 1, max: 20 }),
        (parts, size, reported) => {
          const streams = parts.map((draws) => zipf(draws, 60));
          const exact = exactly(streams.flat());
          const sum = sumOf(streams.map((stream) => cut(listOf(stream, size), reported)));
          for (const { rule, key, count, error } of sum.keys) {
            const name = `${rule}:${key}`;
            const truly = exact.get(name) ?? 0;
            expect(truly).toBeLessThanOrEqual(count);
            expect(truly).toBeGreaterThanOrEqual(count - error);
            expect(error).toBeGreaterThanOrEqual(0);
            exact.delete(name);
          }
          for (const count of exact.values()) expect(count).toBeLessThanOrEqual(sum.othersMax);
        },
      ),
    );
  });

  it('begin with the most frequent, and include the cut part in their error bound', () => {
    const list = cut(listOf([...roundRobin(9, 3), ...roundRobin(2, 2)], 10), 2);
    expect(list.keys.map(({ key, count }) => [key, count])).toEqual([
      ['user-0', 4],
      ['user-1', 4],
    ]);
    expect(list.othersMax).toBe(3);
  });
});
