/** From which numbers a world of each kind is drawn: wide ones for most, and where one thing has to come about, narrow ones. */
import type { Random } from './random.ts';
import type { Kind } from './kinds.ts';

/** Lists are picked from, each value as likely as any other. */
export interface Spread {
  readonly partitions: (random: Random) => number;
  /** With more partitions than this every step costs, and a run is short. */
  readonly partitionsAtLength: number;
  readonly busyMillis: readonly number[];
  readonly tickMillis: (random: Random) => number;
  readonly spares: readonly number[];
  readonly changeMeanMillis: readonly number[];
  readonly faultMeanMillis: readonly number[];
  readonly appendBytesMax: readonly number[];
  /** Chance that there are snapshots of nearly every state. */
  readonly eager: number;
  readonly windowsMillis: readonly number[];
  /** Chance that a request id is remembered no longer than it must be. */
  readonly shortestHorizon: number;
  readonly delayMeanMillis: readonly number[];
  readonly slowShare: readonly number[];
  readonly crawlShare: readonly number[];
  readonly drop: readonly number[];
  readonly syncMeanMillis: readonly number[];
  readonly wallSkewMillis: readonly number[];
  readonly lag: readonly number[];
}

const USUAL: Spread = {
  partitions: (random) => {
    if (random.chance(0.92)) return random.pick([1, 2, 2, 4]);
    return random.chance(0.8) ? random.between(5, 16) : random.between(17, 64);
  },
  partitionsAtLength: 4,
  busyMillis: [20_000, 40_000],
  tickMillis: (random) => random.pick([20, 50, 100]),
  spares: [0, 0, 2, 3, 5, 6],
  changeMeanMillis: [300, 1_000, 4_000],
  faultMeanMillis: [400, 1_000, 3_000],
  appendBytesMax: [1, 200, 2_000, 1 << 20],
  eager: 0.5,
  windowsMillis: [40, 250, 1_000, 5_000],
  shortestHorizon: 0.2,
  delayMeanMillis: [0.3, 1, 5, 20],
  slowShare: [0, 0, 0, 0.3, 1],
  crawlShare: [0, 0, 0, 0.2, 0.5],
  drop: [0, 0, 0.01, 0.1],
  syncMeanMillis: [0.5, 2, 10, 40],
  wallSkewMillis: [0, 50, 60_000],
  lag: [0, 0.1, 0.5],
};

export const SPREAD_OF: Readonly<Record<Kind, Spread>> = {
  usual: USUAL,
  calm: USUAL,
  'short-reigns': {
    ...USUAL,
    // Each group begins anew, and with it the time of the first leader.
    partitions: (random) => random.pick([1, 2, 8]),
    tickMillis: () => 20,
    appendBytesMax: [1, 1, 200],
    wallSkewMillis: [60_000],
  },
  // Groups rest between bursts of requests, and faults find them at rest.
  idle: {
    ...USUAL,
    partitions: (random) => random.pick([1, 2, 4, 8]),
    partitionsAtLength: 8,
    tickMillis: () => 20,
    faultMeanMillis: [1_000, 3_000],
  },
  // What it waits for has to come about several times in a run: everything is quick, and what is remembered is forgotten
  // soon. The smaller a state is, the shorter a log that takes a snapshot.
  'far-behind': {
    ...USUAL,
    partitions: (random) => random.pick([8, 16]),
    partitionsAtLength: Infinity,
    busyMillis: [20_000],
    tickMillis: (random) => random.pick([20]),
    spares: [5, 6],
    changeMeanMillis: [300],
    faultMeanMillis: [400],
    eager: 1,
    windowsMillis: [40, 250],
    shortestHorizon: 1,
    delayMeanMillis: [0.3, 1],
    slowShare: [0],
    crawlShare: [0],
    drop: [0, 0.01],
    syncMeanMillis: [0.5, 2],
    lag: [0, 0.1],
  },
};
