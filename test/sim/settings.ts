/**
 * What kind of world a seed gives: its size, its timing, its rules, and which faults happen how often. Swarm
 * testing: each run leaves most faults out, so that those that remain can go far.
 */
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import { RAFT_DEFAULTS } from '../../raft/core-state.ts';
import type { NodeId } from '../../raft/types.ts';
import type { QueueBounds } from '../../src/node/node-core-init.ts';
import { type ClusterConfig, ticksOf, type Timing } from '../../src/config/config.ts';
import {
  groupMillisMax,
  PARTITION_BYTES_DEFAULT,
  type Rule,
  type RuleTable,
} from '../../src/limiter/rules.ts';
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

export interface NetworkSettings {
  readonly delayMinMillis: number;
  readonly delayMeanMillis: number;
  /** Share of the paths that are slow for good, and by how much. */
  readonly slowShare: number;
  readonly slowMillis: number;
  /** Share of the paths that take longer than a deadline allows, until a quorum is healed, and by how much. */
  readonly crawlShare: number;
  readonly crawlMillis: number;
  /** Per frame. */
  readonly drop: number;
  readonly duplicate: number;
  /** Chance that a bit of a frame flips. */
  readonly corrupt: number;
  /** A connection on which nothing arrives is closed after some seconds. */
  readonly closesSilent: boolean;
  /** A frame of a broken connection still arrives, after those of the next one. */
  readonly late: number;
}

export interface DiskSettings {
  readonly syncMeanMillis: number;
  /** Chance that a crash keeps the write in flight. */
  readonly keep: number;
}

export interface ClientSettings {
  readonly meanMillis: number;
  readonly users: number;
  readonly eventUsers: number;
  readonly withId: number;
  /** Chance that a request takes the id of an earlier one, which asked for something else. */
  readonly reuse: number;
  /** Chance that a request that was granted is asked again, soon or about when its id is forgotten. */
  readonly again: number;
  /** Share of the requests with a cost above 1, and whether such costs go up to the limit. */
  readonly withCost: number;
  readonly costsUpToLimit: boolean;
  /** Some users' timestamps are minutes late, or of another epoch. */
  readonly strangeTimes: boolean;
}

/** Nobody asks, and nothing new breaks, for a long time; then whoever leads is gone. */
export interface Idleness {
  readonly atMillis: number;
  readonly forMillis: number;
}

export interface Settings {
  readonly kind: Kind;
  /** Those the cluster is created with. */
  readonly nodes: number;
  /** Machines that may join later; the last one only in place of one that is lost for good. */
  readonly spares: number;
  /** Between changes of the nodes; 0: there are none. */
  readonly changeMeanMillis: number;
  /** Chance that a node that was removed goes on running. */
  readonly zombies: number;
  readonly timing: Timing;
  readonly raft: Partial<MultiRaftOptions>;
  /** What a node may remember. */
  readonly stateBytesMax: number;
  readonly config: ClusterConfig;
  /** The rule tables a cluster goes through, oldest first; the first one is in `config`. */
  readonly tables: readonly RuleTable[];
  readonly network: NetworkSettings;
  readonly disk: DiskSettings;
  readonly clients: ClientSettings;
  readonly faults: readonly FaultName[];
  readonly faultMeanMillis: number;
  readonly safetyMillis: number;
  readonly idle: Idleness | undefined;
  /** Of a node and its partitions; undefined: the product's own, which no run fills. */
  readonly queues: QueueBounds | undefined;
  /** How fast the clocks of machines run, as long as they are right: parts per million from real time. */
  readonly driftPpm: readonly [min: number, max: number];
  /** No such clock is faster by more. */
  readonly maxDriftPpm: number;
  readonly wallSkewMillis: number;
  /** Chance that a turn of a node does not run at once. */
  readonly lag: number;
}

/** By how much machines' clocks may differ. All of them may be faster than real time by a fifth of that. */
const DRIFT_PPM = 100;
const LEADER_DRIFT_PPM = 120;
/** A full one of these has room in a run. */
const WINDOW_MILLIS_MAX = 10_000;

/** The `life`-th database under this id. */
export function incarnationOf(id: NodeId, life = 0): string {
  return `${String(id).padStart(4, '0')}${String(life).padStart(28, '0')}`;
}

export function addressOf(id: NodeId): NodeAddress {
  return { id, http: { host: 'sim', port: id }, peer: { host: 'sim', port: 1_000 + id } };
}

/** `given`: the kind, which the seed tells otherwise. */
export function drawSettings(random: Random, given?: Kind): Settings {
  const nodes = random.pick([3, 3, 3, 4, 5, 5, 7]);
  const kind = given ?? drawKind(random);
  const faults = kind === 'usual' ? drawFaults(random) : FAULTS_OF[kind];
  const isFar = kind === 'far-behind';
  const isBrief = kind === 'short-reigns';
  // What they wait for has to come about several times in a run: there everything is quick.
  const pick = <T>(usual: readonly T[], quick: readonly T[]): T => random.pick(isFar ? quick : usual);
  // Each group begins anew, and with it the time of the first leader.
  const partitions = isFar ? random.pick([8, 16]) : isBrief ? random.pick([1, 2, 8]) : drawPartitions(random);
  const timing = drawTiming(random, isBrief ? 20 : pick([20, 50, 100], [20]));
  const tables = drawTables(random, timing, isFar);
  const first = tables[0];
  if (first === undefined) throw new RangeError('there is at least one rule table');
  const spares = Math.min(pick([0, 0, 2, 3, 5, 6], [5, 6]), MACHINES_MAX - nodes);
  const ids = Array.from({ length: nodes }, (_, i) => i + 1);
  const driftPpm = drawDrift(random);
  // Every step of so many groups costs.
  const busyMillis = partitions > 4 && !isFar ? 10_000 : pick([20_000, 40_000], [20_000]);
  const idle = random.chance(0.14)
    ? { atMillis: busyMillis / 2, forMillis: random.between(65_000, partitions > 4 ? 70_000 : 150_000) }
    : undefined;
  return {
    kind,
    nodes,
    spares,
    changeMeanMillis: spares > 0 ? pick([300, 1_000, 4_000], [300]) : 0,
    zombies: 0.3,
    timing,
    raft: drawRaft(random, {
      timing,
      partitions,
      appendBytes: isBrief ? [1, 1, 200] : [1, 200, 2_000, 1 << 20],
      eager: isFar ? 1 : faults.includes('longSuffix') || faults.includes('lateForChange') ? 0.8 : 0.5,
    }),
    stateBytesMax: random.pick([Infinity, Infinity, Infinity, Infinity, 40_000]),
    config: {
      clusterId: 'sim',
      founders: ids.map((id) => ({ id, incarnation: incarnationOf(id) })),
      nodes: ids.map(addressOf),
      partitions,
      // With spares, some nodes hold only some partitions, and moving one node moves little.
      replicas: random.pick([3, 3, Math.min(4, nodes), Math.min(5, nodes)]),
      rules: first,
      timing,
      freeFloorBytes: 0,
    },
    tables,
    network: {
      delayMinMillis: random.pick([0.1, 0.5, 2]),
      delayMeanMillis: pick([0.3, 1, 5, 20], [0.3, 1]),
      slowShare: pick([0, 0, 0, 0.3, 1], [0]),
      // A question and its answer take a good part of a deadline; an election must still be possible.
      slowMillis: Math.min(timing.requestDeadlineMillis / 10, timing.electionMillis / 8),
      crawlShare: pick([0, 0, 0, 0.2, 0.5], [0]),
      crawlMillis: timing.requestDeadlineMillis * random.pick([0.3, 0.7, 1.5]),
      drop: pick([0, 0, 0.01, 0.1], [0, 0.01]),
      duplicate: random.pick([0, 0, 0.01, 0.1]),
      corrupt: random.pick([0, 0, 0, 0.001, 0.02]),
      late: random.pick([0, 0.5]),
      closesSilent: random.chance(0.6),
    },
    disk: { syncMeanMillis: pick([0.5, 2, 10, 40], [0.5, 2]), keep: random.pick([0, 0.5, 1]) },
    clients: {
      meanMillis: random.pick([10, 40, 150]),
      users: random.pick(partitions > 4 ? [20, 100] : [2, 5, 20]),
      eventUsers: random.pick([0, 2, 5]),
      withId: random.pick([0.2, 0.7, 1]),
      reuse: random.pick([0, 0.05, 0.3]),
      again: random.pick([0, 0.1, 0.5]),
      withCost: random.pick([0.1, 0.3, 0.8]),
      costsUpToLimit: random.chance(0.5),
      strangeTimes: random.chance(0.5),
    },
    faults,
    faultMeanMillis: pick([400, 1_000, 3_000], [400]),
    safetyMillis: busyMillis + (idle?.forMillis ?? 0),
    idle,
    queues: random.chance(0.15) ? drawQueues(random) : undefined,
    driftPpm,
    maxDriftPpm: driftPpm[1] === 0 ? 0 : LEADER_DRIFT_PPM,
    wallSkewMillis: random.pick(isBrief ? [60_000] : [0, 50, 60_000]),
    lag: pick([0, 0.1, 0.5], [0, 0.1]),
  };
}

const MACHINES_MAX = 9;

function drawPartitions(random: Random): number {
  if (random.chance(0.92)) return random.pick([1, 2, 2, 4]);
  return random.chance(0.8) ? random.between(5, 16) : random.between(17, 64);
}

/** So small that a crowd fills each of them. */
function drawQueues(random: Random): QueueBounds {
  return {
    openMax: random.pick([20, 60, 1_000]),
    pendingMax: random.pick([3, 20, 1_000]),
    inflightMax: random.pick([5, 40, 1_000]),
    batchMax: random.pick([1, 4, 1_000]),
  };
}

/** No two differ by more than they may, and the fastest is as fast as it may be. */
function drawDrift(random: Random): readonly [number, number] {
  const max = random.pick([0, LEADER_DRIFT_PPM, LEADER_DRIFT_PPM, random.between(-DRIFT_PPM, DRIFT_PPM)]);
  return max === 0 ? [0, 0] : [max - DRIFT_PPM + 1, max];
}

function drawTiming(random: Random, tickMillis: number): Timing {
  return {
    tickMillis,
    heartbeatMillis: tickMillis * random.pick([1, 2]),
    electionMillis: tickMillis * random.pick([8, 12]),
    requestDeadlineMillis: random.pick([300, 300, 1_000, 1_000, 1_000, 3_000, 10_000]),
  };
}

/** Small numbers, so that every bound is met: snapshots, full windows of appends, several turns to apply. */
function drawRaft(
  random: Random,
  given: {
    readonly timing: Timing;
    readonly partitions: number;
    readonly appendBytes: readonly number[];
    /** The chance that there are snapshots of nearly every state. */
    readonly eager: number;
  },
): Partial<MultiRaftOptions> {
  const { timing, partitions } = given;
  const appendBytesMax = random.pick(given.appendBytes);
  // Then one is on its way at every moment of a change.
  const isEager = random.chance(given.eager);
  return {
    raft: {
      ...RAFT_DEFAULTS,
      ...ticksOf(timing),
      appendBytesMax,
      inflight: {
        // Few small messages at a time would be an overload, and that is no fault.
        messagesMax: appendBytesMax < 2_000 ? 256 : random.pick([2, 16, 256]),
        bytesMax: 1 << 20,
      },
      uncommittedBytesMax: random.pick([2_000, 1 << 20]),
    },
    snapshotEveryBytes: random.pick(isEager ? [150, 400] : [1_000, 4_000, 20_000, 1 << 20]),
    keepLogBytes: isEager ? 0 : random.pick([0, 500, 4_000]),
    applyBytesMax: random.pick([200, 4 << 20]),
    snapshotWriteBytesMax: random.pick([1, 1 << 20]),
    // The smallest takes two or three entries of all groups.
    writeBytesMax: random.pick([
      Math.max(1_200, 300 * partitions),
      Math.max(5_000, 600 * partitions),
      1 << 20,
    ]),
    streams: { outgoingMax: random.pick([1, 4]), silentTicksMax: 40 },
    balanceTicks: random.pick([10, 25]),
  };
}

/** `isShort`: what is remembered is forgotten soon. The smaller a state is, the shorter a log that takes a snapshot. */
function drawTables(random: Random, timing: Timing, isShort: boolean): RuleTable[] {
  const small = random.chance(0.25);
  // Known users fill what is kept for them: much at once, and for long.
  const windows = small ? [1_000, 5_000] : isShort ? [40, 250] : [40, 250, 1_000, 5_000];
  const limits = small ? [10, 40] : [1, 2, 3, 10, 40];
  let byRequest: Rule = {
    id: 'default',
    limit: random.pick(limits),
    windowMillis: random.pick(windows),
    clock: 'request',
  };
  let byCluster: Rule = {
    id: 'cluster',
    limit: random.pick(limits),
    windowMillis: random.pick(windows),
    clock: 'cluster',
  };
  const tables: RuleTable[] = [];
  // A rule leaves, and comes back with the next table.
  const without = random.chance(0.5) ? random.pick([2, 2, 3]) : 0;
  for (let version = 1; version <= 4; version += 1) {
    tables.push({
      version,
      rules: version === without ? [byRequest] : [byRequest, byCluster],
      requestIdHorizonMillis: drawHorizon(random, timing, isShort ? 1 : 0.2),
      clockDriftPpm: DRIFT_PPM,
      partitionBytesMax: small ? random.pick([4_096, 8_000, 20_000, 60_000]) : PARTITION_BYTES_DEFAULT,
    });
    byRequest = changed(random, byRequest);
    byCluster = changed(random, byCluster);
  }
  return tables;
}

function changed(random: Random, rule: Rule): Rule {
  const windowMillis = Math.floor(rule.windowMillis * random.pick([0.5, 1, 1, 1.5, 4]));
  return {
    ...rule,
    limit: random.chance(0.8) ? random.between(1, 10) : random.between(1, 60),
    windowMillis: Math.min(WINDOW_MILLIS_MAX, Math.max(20, windowMillis)),
  };
}

/** From the shortest that a configuration may have to the longest of which a run sees the end. */
function drawHorizon(random: Random, { requestDeadlineMillis }: Timing, shortest: number): number {
  const least = groupMillisMax(2 * requestDeadlineMillis, DRIFT_PPM);
  const longest = Math.max(60_000, least);
  return random.chance(shortest) ? least : Math.floor(least * (longest / least) ** random.unit());
}

/** Kinds of worlds. In most of them whatever the seed picked breaks; the others are about one thing each. */
export const KINDS = ['usual', 'calm', 'short-reigns', 'far-behind'] as const;
export type Kind = (typeof KINDS)[number];

/** What breaks in all worlds of a kind. */
const FAULTS_OF: Readonly<Record<Exclude<Kind, 'usual'>, readonly FaultName[]>> = {
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

function drawKind(random: Random): Kind {
  if (random.chance(0.1)) return 'calm';
  if (random.chance(0.2)) return 'short-reigns';
  return random.chance(0.38) ? 'far-behind' : 'usual';
}

/** What succeeds rarely is tried in most runs. */
const OFTEN: ReadonlySet<FaultName> = new Set([
  'restoreDirectory',
  'longSuffix',
  'lateForChange',
  'crashRecovering',
  'newRules',
]);

function drawFaults(random: Random): readonly FaultName[] {
  const share = random.pick([0.15, 0.35, 0.7]);
  return FAULTS.filter((fault) => random.chance(OFTEN.has(fault) ? 0.6 : share));
}
