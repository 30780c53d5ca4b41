/**
 * Whether what a process holds on to stops growing: what it holds in the last third of its time against the third before. A leak
 * grows in both; a cache fills, and a sawtooth has the same height in both.
 */
export const MEASURES = ['heapMiB', 'memoryMiB', 'files', 'diskMiB'] as const;
export type Measure = (typeof MEASURES)[number];

/** One look at one process. */
export type Sample = Readonly<Record<Measure, number>> & {
  readonly node: number;
  readonly pid: number;
  /** Of the run, when it was taken. */
  readonly atMillis: number;
};

export interface Plateau {
  readonly node: number;
  readonly measure: Measure;
  readonly samples: number;
  /** In the second and in the last third: of the heap what collections leave, the mean of its lowest tenth; all else at its highest. */
  readonly before: number;
  readonly last: number;
  readonly isReached: boolean;
}

/** More than this above the third before is growth. The share is of a level; the rest is what chance adds to a small one. */
const GROWTH_SHARE_MAX = 0.05;
const SLACK: Readonly<Record<Measure, number>> = { heapMiB: 8, memoryMiB: 24, files: 8, diskMiB: 16 };
/** Fewer in a third say nothing. */
const SAMPLES_MIN = 5;

/** Of each node's last process, from `fromMillis` on; of those that lived too short a time nothing is said. */
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
      const isReached = after <= before * (1 + GROWTH_SHARE_MAX) + SLACK[measure];
      return { node, measure, samples: last.length, before, last: after, isReached };
    });
  });
}

/** Between two collections a heap may be thrice what is alive: how high it is on average is chance. */
function floorOf(values: readonly number[]): number {
  const lowest = values.toSorted((a, b) => a - b).slice(0, Math.ceil(values.length / 10));
  return lowest.reduce((sum, value) => sum + value, 0) / lowest.length;
}

function highestOf(values: readonly number[]): number {
  return Math.max(...values);
}
