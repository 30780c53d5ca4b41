/** The world of the scripts: quick elections, a small network, and all sizes small enough to be reached. */
import { RAFT_DEFAULTS } from '../../../raft/core-state.ts';
import { groupOfPartition } from '../../../src/partition/placement.ts';
import { PARTITION_BYTES_DEFAULT } from '../../../src/limiter/rules.ts';
import {
  addressOf,
  type ClientSettings,
  incarnationOf,
  type NetworkSettings,
  type Settings,
} from '../settings.ts';

/** The limit of a user in a run: nothing leaves a window. */
export const LIMIT = 6;

/** Scripts with a single group use that of this partition. */
export const GROUP = groupOfPartition(0);

const TICK_MILLIS = 10;
const HEARTBEAT_TICKS = 3;
const ELECTION_TICKS = 6;

const NETWORK: NetworkSettings = {
  delayMinMillis: 0.4,
  delayMeanMillis: 0.2,
  slowFraction: 0,
  slowMillis: 0,
  crawlFraction: 0,
  crawlMillis: 0,
  drop: 0,
  duplicate: 0,
  corrupt: 0,
  closesSilent: false,
  late: 0,
};

/** The clients send only the requests of the script. */
const CLIENTS: ClientSettings = {
  meanMillis: 1_000,
  atOnceMax: 1,
  users: 1,
  eventUsers: 0,
  withId: 1,
  reuse: 0,
  again: 0,
  withCost: 0.2,
  costsUpToLimit: false,
  strangeTimes: false,
  joint: 0,
  settled: 0,
  bursts: undefined,
  isPatient: false,
};

export interface Scene {
  /** The founding nodes, and machines that may join. */
  readonly nodes: number;
  readonly spares: number;
  readonly partitions: number;
  readonly replicas: number;
  readonly snapshotEveryBytes: number;
}

export function settingsOf(scene: Scene): Settings {
  const ids = Array.from({ length: scene.nodes }, (_, i) => i + 1);
  const timing = {
    tickMillis: TICK_MILLIS,
    heartbeatMillis: TICK_MILLIS * HEARTBEAT_TICKS,
    electionMillis: TICK_MILLIS * ELECTION_TICKS,
    requestDeadlineMillis: 150,
  };
  const rules = {
    version: 1,
    rules: [{ id: 'default', limit: LIMIT, windowMillis: 60_000, clock: 'cluster' as const }],
    requestIdHorizonMillis: 60_000,
    clockDriftPpm: 100,
    partitionBytesMax: PARTITION_BYTES_DEFAULT,
  };
  return {
    kind: 'calm',
    features: [],
    nodes: scene.nodes,
    spares: scene.spares,
    changeMeanMillis: 0,
    zombies: 1,
    timing,
    raft: {
      raft: { ...RAFT_DEFAULTS, heartbeatTicks: HEARTBEAT_TICKS, electionTicks: ELECTION_TICKS },
      snapshotEveryBytes: scene.snapshotEveryBytes,
      keepLogBytes: 0,
      // Each chunk is a separate write.
      snapshotWriteBytesMax: 1,
      streams: { outgoingMax: 2, silentTicksMax: 10 },
      balanceTicks: 20,
    },
    stateBytesMax: Infinity,
    config: {
      clusterId: 'sim',
      founders: ids.map((id) => ({ id, incarnation: incarnationOf(id) })),
      nodes: ids.map(addressOf),
      partitions: scene.partitions,
      replicas: scene.replicas,
      rules,
      timing,
      freeFloorBytes: 0,
    },
    tables: [rules],
    network: NETWORK,
    disk: { syncMeanMillis: 1, keep: 0 },
    clients: CLIENTS,
    faults: [],
    faultMeanMillis: 1,
    safetyMillis: 0,
    idle: undefined,
    queues: undefined,
    driftPpm: [0, 0],
    maxDriftPpm: 0,
    wallSkewMillis: 0,
    lag: 0,
  };
}
