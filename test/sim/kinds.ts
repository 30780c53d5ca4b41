/** What may break, and the kinds of worlds: in most of them whatever the seed picked, in the others what one thing needs. */
import type { Random } from './random.ts';

export const FAULTS = [
  'isolate',
  'isolateLeader',
  'halves',
  'oneWay',
  'bridge',
  'ring',
  'clog',
  'stuckRequests',
  'swizzle',
  'break',
  'crash',
  'crashLeader',
  'huntLeaders',
  'crashMost',
  'crashAll',
  'crashLoop',
  'crashInside',
  'stop',
  'handOver',
  'pause',
  'pauseLeader',
  'slowDisk',
  'diskError',
  'lowDisk',
  'fullMemory',
  'wallJump',
  'wrongClock',
  'crowd',
  'newRules',
  'loseDirectory',
  'flipBits',
  'spoilSnapshot',
  'unsoundSnapshot',
  'restoreDirectory',
  'makeAnew',
  'blind',
  'editFile',
  'longSuffix',
  'lateForChange',
  'crashRecovering',
  'tornBatch',
] as const;
export type FaultName = (typeof FAULTS)[number];

/** In `usual` and `idle` whatever the seed picked breaks; the others are about one thing each. In `idle` clients sleep most of the time. */
export const KINDS = ['usual', 'calm', 'short-reigns', 'far-behind', 'idle'] as const;
export type Kind = (typeof KINDS)[number];

/** What breaks in all worlds of a kind. */
const FAULTS_OF: Readonly<Record<Exclude<Kind, 'usual' | 'idle'>, readonly FaultName[]>> = {
  calm: [],
  // Figure 8 of the Raft paper needs several leaders in a row that leave little behind.
  'short-reigns': ['huntLeaders', 'huntLeaders', 'isolateLeader', 'crashLeader'],
  // Replicas are left far behind, by leaders of other terms and in the middle of changes, and need snapshots.
  'far-behind': [
    'longSuffix',
    'longSuffix',
    'longSuffix',
    'lateForChange',
    'lateForChange',
    'restoreDirectory',
  ],
};

export function drawKind(random: Random): Kind {
  if (random.chance(0.1)) return 'calm';
  if (random.chance(0.2)) return 'short-reigns';
  const unit = random.unit();
  if (unit < 0.46) return 'far-behind';
  return unit < 0.88 ? 'usual' : 'idle';
}

/** What succeeds rarely is tried in most runs. */
const OFTEN: ReadonlySet<FaultName> = new Set([
  'restoreDirectory',
  'longSuffix',
  'lateForChange',
  'crashRecovering',
  'newRules',
]);

export function drawFaults(random: Random, kind: Kind): readonly FaultName[] {
  if (kind !== 'usual' && kind !== 'idle') return FAULTS_OF[kind];
  const share = random.pick([0.15, 0.35, 0.7]);
  return FAULTS.filter((fault) => random.chance(OFTEN.has(fault) ? 0.6 : share));
}
