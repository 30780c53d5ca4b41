/**
 * The features that a world may have. Swarm testing (Groce et al., ISSTA 2012): each world leaves most of them out, at
 * random, so that the others interact often in a cluster that works. A few worlds have everything.
 */
import type { FaultName, Kind } from './kinds.ts';
import type { Random } from './random.ts';

/** The given part of a world; the seed draws the rest. */
export interface Theme {
  readonly kind?: Kind | undefined;
  /** The world has these features in any case. */
  readonly features?: readonly Feature[] | undefined;
  /** The world has these faults in any case. */
  readonly faults?: readonly FaultName[] | undefined;
}

/** The chance that a world has a feature. Each is drawn independently. */
const CHANCES = {
  /** Rules come as documents, and some users ask by descriptors. */
  documents: 0.15,
  /** Operators give keys limits of their own, block and reset them. */
  customers: 0.14,
  /** Requests under several limits at once. */
  severalLimits: 0.3,
  /** Users request refunds. */
  refunds: 0.3,
  /** Many requests in one body. */
  batches: 0.1,
  /** Rules that count by buckets, fixed windows, counters or granules. */
  meters: 0.3,
  /** Users whose requests carry timestamps, and whether some of these are strange. */
  timestamps: 0.35,
  strangeTimes: 0.2,
  /** Costs above 1, and up to the limit. */
  costs: 0.5,
  /** Most requests have an id; ids are reused for other requests; grants are repeated. */
  ids: 0.7,
  reusedIds: 0.3,
  repeats: 0.5,
  /** Users who only peek at the status of a key. */
  peeks: 0.3,
  /** Nodes name their zone and their host. */
  labels: 0.12,
  /** Nodes join, leave and are replaced. */
  members: 0.3,
  /** More than four partitions. */
  manyPartitions: 0.06,
  /** No client asks for a minute or two. */
  idleness: 0.07,
  /** The state has room for few users. */
  smallStates: 0.01,
  /** Queues of a node hold few requests. */
  shortQueues: 0.02,
  /** Snapshots of nearly every state, and no log kept behind them. */
  eagerSnapshots: 0.45,
  /** Few bytes in a message, in flight, uncommitted, or in a write. */
  smallMessages: 0.2,
  smallWindows: 0.12,
  smallLogs: 0.04,
  smallWrites: 0.15,
  /** Clocks of machines run at different rates, and show different times. */
  drift: 0.3,
  wallSkew: 0.3,
  /** A process does not get the processor at once. */
  lag: 0.2,
  /** Slow, lossy and unreliable networks. */
  farApart: 0.12,
  slowPaths: 0.1,
  crawlingPaths: 0.04,
  drops: 0.15,
  duplicates: 0.2,
  corruption: 0.08,
  lateFrames: 0.2,
  /** Disks that take tens of milliseconds. */
  slowDisks: 0.06,
  /** Deadlines shorter than an election, and others much longer. */
  shortDeadlines: 0.12,
  longDeadlines: 0.12,
  /** Clients that keep asking without a pause, even after failures. */
  impatience: 0.08,
} as const;

type Drawn = keyof typeof CHANCES;
const DRAWN = Object.keys(CHANCES) as readonly Drawn[];

/** Leaders gather on one node while none is busy. This has no draw of its own, so other worlds stay the same. */
const GATHERING = 'gathering';

export type Feature = Drawn | typeof GATHERING;
export const FEATURES: readonly Feature[] = [...DRAWN, GATHERING];

/** Worlds that have everything, except features that leave too little room or time: those have worlds of their own. */
const EVERYTHING = 0.01;
const SCARCE: ReadonlySet<Feature> = new Set([
  'smallStates',
  'shortQueues',
  'smallLogs',
  'shortDeadlines',
  'slowDisks',
  'farApart',
  'crawlingPaths',
  'impatience',
]);

/** A kind of world has its typical features in most of its worlds. The rest of the mix stays as usual. */
const CHANCES_OF: Readonly<Partial<Record<Kind, Readonly<Partial<Record<Drawn, number>>>>>> = {
  'far-behind': {
    members: 1,
    eagerSnapshots: 1,
    smallMessages: 0.5,
    documents: 0.05,
    customers: 0.05,
    batches: 0.03,
    labels: 0.05,
    manyPartitions: 0,
    idleness: 0,
    smallStates: 0,
    slowDisks: 0,
    farApart: 0,
    crawlingPaths: 0,
  },
  'short-reigns': { smallStates: 0, smallMessages: 0.6, wallSkew: 0.8, idleness: 0 },
  idle: { idleness: 0, batches: 0, customers: 0 },
  crowded: {
    smallStates: 0.5,
    shortQueues: 0.5,
    smallWindows: 0.3,
    smallLogs: 0.3,
    impatience: 0.5,
    idleness: 0,
    longDeadlines: 0.3,
  },
};

export function drawFeatures(random: Random, kind: Kind, wanted: readonly Feature[]): ReadonlySet<Feature> {
  const hasAll = random.chance(EVERYTHING);
  const chances = { ...CHANCES, ...CHANCES_OF[kind] };
  // The number of draws is constant, so a world with one feature more or less is otherwise the same.
  const drawn = DRAWN.filter((feature) => random.unit() < chances[feature]);
  const all = DRAWN.filter((feature) => chances[feature] > 0 && !SCARCE.has(feature));
  const features = new Set<Feature>(hasAll ? all : drawn);
  if (features.has('peeks') && features.has('wallSkew')) features.add(GATHERING);
  return new Set([...features, ...wanted]);
}
