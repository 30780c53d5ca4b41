/**
 * All faults, and the kinds of worlds: in most kinds the seed chooses the faults, the others have the faults that one
 * purpose needs.
 */
import type { Random } from './random.ts';

/** The chance that a usual world has a fault. A fault that rarely takes effect is drawn more often. */
const FAULT_CHANCES = {
  isolate: 0.12,
  isolateLeader: 0.12,
  halves: 0.1,
  oneWay: 0.12,
  bridge: 0.08,
  ring: 0.08,
  clog: 0.1,
  stuckRequests: 0.08,
  swizzle: 0.08,
  break: 0.12,
  crash: 0.15,
  crashLeader: 0.15,
  huntLeaders: 0.06,
  crashMost: 0.08,
  crashAll: 0.08,
  crashLoop: 0.1,
  crashInside: 0.15,
  stop: 0.15,
  handOver: 0.15,
  pause: 0.15,
  pauseLeader: 0.15,
  slowDisk: 0.1,
  diskError: 0.08,
  lowDisk: 0.05,
  fullMemory: 0.03,
  wallJump: 0.12,
  wrongClock: 0.15,
  crowd: 0.06,
  newRules: 0.35,
  loseDirectory: 0.08,
  flipBits: 0.08,
  spoilSnapshot: 0.08,
  unsoundSnapshot: 0.1,
  restoreDirectory: 0.4,
  makeAnew: 0.08,
  blind: 0.1,
  editFile: 0.08,
  longSuffix: 0.08,
  lateForChange: 0.05,
  crashRecovering: 0.15,
  tornBatch: 0.08,
} as const;
export type FaultName = keyof typeof FAULT_CHANCES;
export const FAULTS = Object.keys(FAULT_CHANCES) as readonly FaultName[];

/** A few worlds have every fault, and some have about twice as many as most. */
const EVERYTHING = 0.01;
const RESTLESS = 0.15;
const RESTLESS_TIMES = 2.5;

/**
 * In `usual`, `small`, `idle` and `crowded` the seed chooses the faults; each other kind has one purpose. In `idle`
 * clients sleep most of the time. In `crowded` there is too little room: for users, for requests, for bytes.
 */
export const KINDS = ['usual', 'small', 'calm', 'short-reigns', 'far-behind', 'idle', 'crowded'] as const;
export type Kind = (typeof KINDS)[number];

/** The faults in all worlds of a kind. */
const FAULTS_OF = {
  calm: [],
  // Figure 8 of the Raft paper needs several leaders in a row that leave little behind.
  'short-reigns': ['huntLeaders', 'huntLeaders', 'isolateLeader', 'crashLeader'],
  // Replicas fall far behind, under leaders of other terms and in the middle of changes, and need snapshots.
  'far-behind': [
    'longSuffix',
    'longSuffix',
    'longSuffix',
    'longSuffix',
    'lateForChange',
    'lateForChange',
    'restoreDirectory',
    'restoreDirectory',
  ],
} as const satisfies Readonly<Partial<Record<Kind, readonly FaultName[]>>>;

function isAboutOne(kind: Kind): kind is keyof typeof FAULTS_OF {
  return kind in FAULTS_OF;
}

const CROWDED: readonly FaultName[] = ['crowd', 'fullMemory', 'lowDisk', 'stuckRequests', 'slowDisk'];

export function drawKind(random: Random): Kind {
  const unit = random.unit();
  if (unit < 0.3) return 'usual';
  if (unit < 0.38) return 'small';
  if (unit < 0.42) return 'calm';
  if (unit < 0.48) return 'short-reigns';
  if (unit < 0.88) return 'far-behind';
  return unit < 0.94 ? 'idle' : 'crowded';
}

export function drawFaults(random: Random, kind: Kind, wanted: readonly FaultName[]): readonly FaultName[] {
  const drawn = drawnFaults(random, kind);
  return wanted.length === 0 ? drawn : [...new Set([...drawn, ...wanted])];
}

function drawnFaults(random: Random, kind: Kind): readonly FaultName[] {
  if (isAboutOne(kind)) return FAULTS_OF[kind];
  const hasAll = random.chance(EVERYTHING);
  const times = random.chance(RESTLESS) ? RESTLESS_TIMES : 1;
  const drawn = FAULTS.filter((fault) => random.unit() < FAULT_CHANCES[fault] * times);
  if (hasAll) return FAULTS;
  if (kind !== 'crowded') return drawn;
  const more = CROWDED.filter(() => random.chance(0.4));
  return [...new Set([...drawn, ...more])];
}
