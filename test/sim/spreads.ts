/** The ranges from which each kind of world draws its numbers, unless a feature changes them (features.ts). */
import type { Random } from './random.ts';
import type { Kind } from './kinds.ts';

/** A list means that each of its values is equally likely. */
export interface Spread {
  readonly nodes: readonly number[];
  readonly partitions: readonly number[];
  /** With more partitions than this every step is expensive, so the run is short. */
  readonly partitionsAtLength: number;
  /** How long faults may be active. */
  readonly busyMillis: readonly number[];
  readonly tickMillis: readonly number[];
  readonly spares: readonly number[];
  readonly changeMeanMillis: readonly number[];
  readonly faultMeanMillis: readonly number[];
  /** The time between two moments in which a client asks for grants. */
  readonly clientMeanMillis: readonly number[];
  readonly windowsMillis: readonly number[];
  /** Chance that a request id is remembered for the shortest legal time. */
  readonly shortestHorizon: number;
  readonly delayMeanMillis: readonly number[];
  readonly syncMeanMillis: readonly number[];
}

const USUAL: Spread = {
  nodes: [3, 3, 3, 4, 5, 5, 7],
  partitions: [1, 2, 2, 4],
  partitionsAtLength: 4,
  busyMillis: [3_000, 6_000, 10_000],
  tickMillis: [20, 50, 100],
  spares: [2, 3, 5, 6],
  changeMeanMillis: [300, 1_000, 4_000],
  faultMeanMillis: [400, 800, 2_000],
  clientMeanMillis: [8, 20, 40],
  windowsMillis: [40, 250, 1_000, 5_000],
  shortestHorizon: 0.3,
  delayMeanMillis: [0.3, 1, 5],
  syncMeanMillis: [0.5, 2, 10],
};

export const SPREAD_OF: Readonly<Record<Kind, Spread>> = {
  usual: USUAL,
  // Most bugs need neither many nodes nor much time, but many events on the same few entries and keys.
  small: {
    ...USUAL,
    nodes: [3],
    partitions: [1, 2],
    busyMillis: [4_000],
    tickMillis: [20],
    spares: [1, 2],
    changeMeanMillis: [300, 1_000],
    faultMeanMillis: [300, 700],
    clientMeanMillis: [8, 20],
    windowsMillis: [40, 250, 1_000],
  },
  calm: { ...USUAL, busyMillis: [4_000, 8_000] },
  crowded: { ...USUAL, clientMeanMillis: [8, 20] },
  'short-reigns': {
    ...USUAL,
    // Each group starts anew, and so does the time of its first leader.
    partitions: [1, 2, 8],
    busyMillis: [6_000, 10_000],
    tickMillis: [20],
    faultMeanMillis: [400, 1_000],
    clientMeanMillis: [15, 30],
  },
  // Groups rest between bursts of requests, and faults hit resting groups.
  idle: {
    ...USUAL,
    partitions: [1, 2, 4, 8],
    partitionsAtLength: 8,
    tickMillis: [20],
    busyMillis: [10_000, 20_000],
    faultMeanMillis: [1_000, 3_000],
  },
  // The rare events of this kind must happen several times in a run, so everything is quick and is forgotten soon. The
  // smaller a state is, the shorter the log that triggers a snapshot.
  'far-behind': {
    ...USUAL,
    partitions: [8, 16],
    partitionsAtLength: Infinity,
    // Machines that may still join last no longer.
    busyMillis: [11_000],
    tickMillis: [20],
    spares: [5, 6],
    changeMeanMillis: [300],
    faultMeanMillis: [300],
    // The decisive requests come from streams.
    clientMeanMillis: [50, 150],
    windowsMillis: [40, 250],
    shortestHorizon: 1,
    delayMeanMillis: [0.3, 1],
    syncMeanMillis: [0.5, 2],
  },
};

/** Few worlds have many partitions, and still fewer very many. */
export function drawPartitions(random: Random, spread: Spread, hasMany: boolean): number {
  if (!hasMany) return random.pick(spread.partitions);
  return random.chance(0.8) ? random.between(5, 16) : random.between(17, 64);
}
