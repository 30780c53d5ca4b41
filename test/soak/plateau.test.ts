/** Tests the decision whether the resources of a process still grow. */
import { describe, expect, it } from 'vitest';
import { forEachSeed, seeded } from '../raft/seeded.ts';
import { type Measure, plateausOf, type Sample } from './plateau.ts';

const MINUTES = 20;
const PER_MINUTE = 12;

function run(valueAt: (minute: number) => number, measure: Measure, pid = 1): Sample[] {
  return Array.from({ length: MINUTES * PER_MINUTE }, (_, i) => ({
    node: 1,
    pid,
    atMillis: (i * 60_000) / PER_MINUTE,
    heapMiB: 50,
    memoryMiB: 120,
    files: 40,
    diskMiB: 20,
    [measure]: valueAt(i / PER_MINUTE),
  }));
}

function isReached(samples: readonly Sample[], measure: Measure): boolean | undefined {
  return plateausOf(samples, 0).find((each) => each.measure === measure)?.isReached;
}

/** A heap that keeps `growth` MiB more after collections every minute. */
function isHeapReached(seed: number, growth: number): boolean | undefined {
  const below = seeded(seed);
  return isReached(
    run((minute) => 38 + growth * minute + below(90), 'heapMiB'),
    'heapMiB',
  );
}

describe('a resource of a process', () => {
  it.each([
    ['heapMiB', 3],
    ['memoryMiB', 8],
    ['files', 3],
    ['diskMiB', 4],
  ] as const)('has no plateau while it grows: %s, by %i a minute', (measure, growth) => {
    expect(
      isReached(
        run((minute) => 50 + growth * minute, measure),
        measure,
      ),
    ).toBe(false);
  });

  it.each(['heapMiB', 'memoryMiB', 'files', 'diskMiB'] as const)(
    'has a plateau as a sawtooth: %s',
    (measure) => {
      expect(
        isReached(
          run((minute) => 50 + 30 * (minute % 2), measure),
          measure,
        ),
      ).toBe(true);
    },
  );

  it('has a plateau as a heap with collections at random times, and none if they leave more and more', () => {
    forEachSeed(
      Array.from({ length: 40 }, (_, i) => i + 1),
      (seed) => {
        expect(isHeapReached(seed, 0)).toBe(true);
        expect(isHeapReached(seed, 5)).toBe(false);
      },
    );
  });

  it('has a plateau after a cache has filled', () => {
    const filling = run((minute) => 50 + Math.min(200, 40 * minute), 'memoryMiB');
    expect(isReached(filling, 'memoryMiB')).toBe(true);
  });

  it('is judged only for the last process of a node, and only if it lived long enough', () => {
    const [first, second] = [run(() => 50, 'files'), run(() => 5_000, 'files', 2)];
    const later = second.map((sample) => ({ ...sample, atMillis: sample.atMillis + MINUTES * 60_000 }));
    expect(isReached([...first, ...later], 'files')).toBe(true);
    expect(plateausOf([...first, ...later.slice(0, 10)], 0)).toEqual([]);
    expect(plateausOf(first, MINUTES * 60_000)).toEqual([]);
  });
});
