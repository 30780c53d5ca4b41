/**
 * Decides whether the resources of a process stop growing, by comparing the last third of its time with the third
 * before. A leak grows in both. A cache is full by then, and a sawtooth has the same height in both.
 */
export const MEASURES = ['heapMiB', 'memoryMiB', 'files', 'diskMiB'] as const;
export type Measure = (typeof MEASURES)[number];

/** One measurement of one process. */
export type Sample = Readonly<Record<Measure, number>> & {
  readonly node: number;
  readonly pid: number;
  /** Time since the start of the run. */
  readonly atMillis: number;
};

export interface Plateau {
  readonly node: number;
  readonly measure: Measure;
  readonly samples: number;
  /**
   * Levels in the second and in the last third. For the heap it is the mean of the lowest tenth (after collections),
   * otherwise the maximum.
   */
  readonly before: number;
  readonly last: number;
  readonly isReached: boolean;
}

/**
 * A larger increase over the third before is growth. The fraction is relative to the level; the constant allows for
 * noise.
 */
const GROWTH_FRACTION_MAX = 0.05;
const SLACK: Readonly<Record<Measure, number>> = { heapMiB: 8, memoryMiB: 24, files: 8, diskMiB: 16 };
/** A third with fewer samples is not judged. */
const SAMPLES_MIN = 5;

/** Judges the last process of each node from `fromMillis` on. Processes that lived too short a time are left out. */
export function plateausOf(samples: readonly Sample[], fromMillis: number): readonly Plateau[] {
  const nodes = [...new Set(samples.map(({ node }) => node))].sort((a, b) => a - b);
  return nodes.flatMap((node) => {
    const own = samples.filter((sample) => sample.node === node && sample.atMillis >= fromMillis);
    const last = own.filter(({ pid }) => pid === own.at(-1)?.pid);
    const third = Math.floor(last.length / 3);
    if (third < SAMPLES_MIN) return [];
    return MEASURES.map((measure) => {
      const level = measure === 'heapMiB' ? floorOf : highestOf;
      const values = last.map((sample) => sample[measure]);
      const before = level(values.slice(third, 2 * third));
      const after = level(values.slice(2 * third));
      const isReached = after <= before * (1 + GROWTH_FRACTION_MAX) + SLACK[measure];
      return { node, measure, samples: last.length, before, last: after, isReached };
    });
  });
}

/** Level of the heap after collections. Between them it may be three times the live data, so its average is random. */
function floorOf(values: readonly number[]): number {
  const lowest = values.toSorted((a, b) => a - b).slice(0, Math.ceil(values.length / 10));
  return lowest.reduce((sum, value) => sum + value, 0) / lowest.length;
}

function highestOf(values: readonly number[]): number {
  return Math.max(...values);
}
