/** The settings of a simulated world: its size, timing, rules, faults, and their frequency. */
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
  /** The fraction of the paths that are always slow, and by how much. */
  readonly slowFraction: number;
  readonly slowMillis: number;
  /** The fraction of the paths that are slower than a deadline allows, until a quorum is healed, and by how much. */
  readonly crawlFraction: number;
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
  /** The mean time between two moments in which a client asks. */
  readonly meanMillis: number;
  /** The most requests in one such moment. Half of the moments have one. */
  readonly atOnceMax: number;
  readonly users: number;
  readonly eventUsers: number;
  readonly withId: number;
  /** Chance that a request takes the id of an earlier one that asked for something else. */
  readonly reuse: number;
  /** Chance that a granted request is repeated, soon or around the time when its id is forgotten. */
  readonly again: number;
  /** The fraction of the requests with a cost above 1, and whether such costs go up to the limit. */
  readonly withCost: number;
  readonly costsUpToLimit: boolean;
  /** Some users' timestamps are minutes late, or of another epoch. */
  readonly strangeTimes: boolean;
  /** The fraction of the requests under several limits. */
  readonly joint: number;
  /** The fraction of settled requests among those. */
  readonly settled: number;
  /** Clients ask only in bursts until the faults end; undefined: there are no bursts. */
  readonly bursts: { readonly burstMillis: number; readonly sleepMillis: number } | undefined;
  /** A client without a decision waits before it asks that partition again, longer each time (patience.ts). */
  readonly isPatient: boolean;
}

/** Requests that come together in one body. */
export interface BatchSettings {
  readonly meanMillis: number;
}

/** Operators' changes of keys. */
export interface OperatorSettings {
  readonly meanMillis: number;
  /** Keys of users who name their rules. */
  readonly keys: readonly string[];
  /** Rules under which such a key may have limits of its own, and which of all rules are buckets. */
  readonly rules: readonly string[];
  readonly buckets: readonly string[];
  /** Users who are customers, and the rules for them. */
  readonly customers: readonly string[];
  readonly customerRules: readonly string[];
}

/** The number of zones and hosts that nodes may name as their location. */
export interface LabelSettings {
  readonly zones: number;
  readonly hosts: number;
}

/** No client asks and no fault begins for a long time; then the leader fails. */
export interface Idleness {
  readonly atMillis: number;
  readonly forMillis: number;
}

export interface Settings {
  readonly kind: Kind;
  readonly features: readonly Feature[];
  /** The founding nodes. */
  readonly nodes: number;
  /** Machines that may join later. The last one joins only in place of one that is lost for good. */
  readonly spares: number;
  /** The mean time between membership changes; 0: there are none. */
  readonly changeMeanMillis: number;
  /** Chance that a removed node goes on running. */
  readonly zombies: number;
  readonly timing: Timing;
  readonly raft: Partial<MultiRaftOptions>;
  /** The most bytes that the state of a node may hold. */
  readonly stateBytesMax: number;
  readonly config: ClusterConfig;
  /** The rule tables that a cluster goes through, oldest first. The first one is in `config`. */
  readonly tables: readonly RuleTable[];
  /** All of these tables but the first come as documents, and users ask by descriptors. Absent: there are none. */
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
  /** The queues of a node and its partitions; undefined: the product's own sizes, which no run fills. */
  readonly queues: QueueBounds | undefined;
  /** The rate of right clocks: parts per million from real time. */
  readonly driftPpm: readonly [min: number, max: number];
  /** No right clock is faster by more. */
  readonly maxDriftPpm: number;
  readonly wallSkewMillis: number;
  /** Chance that a turn of a node's event loop is delayed. */
  readonly lag: number;
}

/** The `life`-th database under this id. */
export function incarnationOf(id: NodeId, life = 0): string {
  return `${String(id).padStart(4, '0')}${String(life).padStart(28, '0')}`;
}

export function addressOf(id: NodeId): NodeAddress {
  return { id, http: { host: 'sim', port: id }, peer: { host: 'sim', port: 1_000 + id } };
}
