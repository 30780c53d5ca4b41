/** What a node without sockets, timers and clocks needs of the outside world, and tells it. */
import type { NodeLoad } from './gathering.ts';
import type { GroupApplication, MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { SheddingOfForwarded } from '../api/shedding.ts';
import type { UsageQuery } from '../api/usage.ts';
import type { ClockVerdict } from '../clock/clock-rates.ts';
import type { ClusterConfig } from '../config/config.ts';
import type { Admission } from '../meta/admission.ts';
import type { MetaState } from '../meta/cluster-state.ts';
import type { Exclusion } from '../meta/own-membership.ts';
import type { CapacityReport } from '../partition/capacity-watch.ts';
import type { Hash32 } from '../partition/hash.ts';
import type { EntryTiming } from '../partition/entry-timing.ts';
import type { PartitionOptions } from '../partition/partition-options.ts';
import type { NodeUsage } from '../usage/node-usage.ts';
import type { PeerFrameType } from '../wire/frame.ts';
import type { NodeReport } from '../wire/node-report.ts';

/** Where the ids of what is asked of other nodes start: answers for an earlier process match nothing. */
export const FIRST_ID_BOUND = 2 ** 47;

export interface Clocks {
  /** Never runs back; fractions of a millisecond. */
  readonly monotonicMillis: () => number;
  /** Milliseconds since 1970. Used to start group time, to refuse timestamps from the future, and in headers. */
  readonly wallMillis: () => number;
}

export interface NodeCoreInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Kept up to date here; asked by whoever takes connections. */
  readonly admission: Admission;
  readonly store: LogStore;
  readonly hash: Hash32;
  readonly clocks: Clocks;
  /** On the monotonic clock: what is read from sockets now came after this. */
  readonly doorMillis: () => number;
  /** A whole number in [0, bound), bound up to 2^47. */
  readonly random: (bound: number) => number;
  /** Runs `fn` soon, after what is already queued. */
  readonly defer: (fn: () => void) => void;
  /** Runs `fn` when what was deferred has run: what that decided leaves together. */
  readonly gather: (fn: () => void) => void;
  /** Sends one frame to a peer; false if it was dropped. */
  readonly send: (to: NodeId, type: PeerFrameType, payload: Uint8Array) => boolean;
  /** Whether there are connections to and from a peer: it can be asked, and can answer. */
  readonly isConnected: (peer: NodeId) => boolean;
  /** What this node has to do, asked once a second; absent: leaders do not gather. */
  readonly load?: () => NodeLoad;
  /** Leaders gather on this node now, or, if it is `NO_NODE`, are where the placement says. */
  readonly leadersGather?: (target: NodeId) => void;
  /** Refuses what other nodes forward and is too much for this one; absent: only full queues do. */
  readonly shedding?: SheddingOfForwarded;
  /** What the doors of this node answered; absent: nothing was counted. */
  readonly usage?: (query: UsageQuery, untilMinute: number) => NodeUsage;
  /** What a rule in shadow would have done to a request that all others let through. */
  readonly tried?: (ruleId: string, wouldAllow: boolean) => void;
  /** A peer says how its groups are doing. */
  readonly reported?: (report: NodeReport) => void;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** The nodes of the cluster are others now, or are known for the first time, or other ones are admitted. */
  readonly nodesChanged?: (state: MetaState, metaMembers: readonly NodeId[]) => void;
  /** Called once: this node was removed, or is not the one whose id it bears. It takes part no more. */
  readonly excluded?: (exclusion: Exclusion) => void;
  /** A partition that this node leads has applied an entry that was proposed here. */
  readonly timed?: ((partition: number, timing: EntryTiming) => void) | undefined;
  /** An operator drains this node, or does so no more. */
  readonly drained?: (isDraining: boolean) => void;
  /** Whether this node's clock runs at the speed of the others' has changed. */
  readonly clockJudged?: (verdict: ClockVerdict) => void;
  /** A group was added to this node, before anything of it is applied beyond `applied`; for those who look on. */
  readonly groupAdded?: (group: GroupId, app: GroupApplication, applied: number) => void;
  /** While the node loads: so many groups of so many have been read. */
  readonly loaded?: (done: number, total: number) => void;
  /** A leader sent a snapshot that is no sound one; it was forgotten. */
  readonly snapshotRefused?: (group: GroupId, error: unknown) => void;
  /** Requests are refused for want of room now, or no longer. */
  readonly refusingAtCapacity?: (isRefusing: boolean, report: CapacityReport) => void;
  /** Answers are by the fail modes of rules now; or no longer, and `decisions` were. */
  readonly decidesDegraded?: (isDegraded: boolean, decisions: number) => void;
  /** Called once, when nothing may be said any more. */
  readonly fatal: (error: unknown) => void;
  readonly raft?: Partial<MultiRaftOptions>;
  /** Smaller than usual, for tests that fill them. */
  readonly queues?: QueueBounds;
}

/** Requests that wait at a time: at a node for their answer, and see `PartitionOptions`. */
export interface QueueBounds extends Pick<PartitionOptions, 'pendingMax' | 'inflightMax' | 'batchMax'> {
  readonly openMax: number;
}
