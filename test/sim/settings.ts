/** What a simulated world is: its size, its timing, its rules, what breaks, and how often. */
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterConfig, Timing } from '../../src/config/config.ts';
import type { RuleTable } from '../../src/limiter/rules.ts';
import type { QueueBounds } from '../../src/node/node-core-init.ts';
import type { DocumentSettings } from './documents.ts';
import type { Feature } from './features.ts';
import type { FaultName, Kind } from './kinds.ts';

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
  /** Between two moments in which somebody asks. */
  readonly meanMillis: number;
  /** The most requests in one such moment. In half of them there is one. */
  readonly atOnceMax: number;
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
  /** Share of the requests that are under several limits. */
  readonly joint: number;
  /** Share of those that happened already. */
  readonly settled: number;
  /** Nobody asks but in bursts, until the faults end; undefined: there are no bursts. */
  readonly bursts: { readonly burstMillis: number; readonly sleepMillis: number } | undefined;
  /** Who gets no decision waits before it asks that partition again, and longer each time (patience.ts). */
  readonly isPatient: boolean;
}

/** Requests that come many in one body. */
export interface BatchSettings {
  readonly meanMillis: number;
}

/** What operators say of keys. */
export interface OperatorSettings {
  readonly meanMillis: number;
  /** Of users who name their rules. */
  readonly keys: readonly string[];
  /** Rules that such a key may have limits of its own under, and which of all rules are buckets. */
  readonly rules: readonly string[];
  readonly buckets: readonly string[];
  /** Of users who are customers, and the same for these. */
  readonly customers: readonly string[];
  readonly customerRules: readonly string[];
}

/** Of how many zones and hosts nodes may say that they are there. */
export interface LabelSettings {
  readonly zones: number;
  readonly hosts: number;
}

/** Nobody asks, and nothing new breaks, for a long time; then whoever leads is gone. */
export interface Idleness {
  readonly atMillis: number;
  readonly forMillis: number;
}

export interface Settings {
  readonly kind: Kind;
  readonly features: readonly Feature[];
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
  /** Of these tables all but the first come as documents, and users ask by descriptors; absent: none does. */
  readonly documents?: DocumentSettings;
  /** Absent: there are none. */
  readonly operators?: OperatorSettings;
  /** Absent: there are none. */
  readonly batches?: BatchSettings;
  /** Absent: no node has labels. */
  readonly labels?: LabelSettings;
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

/** The `life`-th database under this id. */
export function incarnationOf(id: NodeId, life = 0): string {
  return `${String(id).padStart(4, '0')}${String(life).padStart(28, '0')}`;
}

export function addressOf(id: NodeId): NodeAddress {
  return { id, http: { host: 'sim', port: id }, peer: { host: 'sim', port: 1_000 + id } };
}
