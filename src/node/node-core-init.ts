/** The dependencies of a node core on the outside world, and its events. Types only. */
import type { NodeLoad } from './gathering.ts';
import type { GroupApplication, MultiRaftOptions } from '../../raft/driver/multi-raft.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import type { Clocks } from '../api/clocks.ts';
import type { SheddingOfForwarded } from '../api/api-listener.ts';
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

/** Bound for random first correlation ids, so that answers to an earlier process match nothing. */
export const FIRST_ID_BOUND = 2 ** 47;

/** What `NodeCore` needs. */
export interface NodeCoreInit {
  readonly config: ClusterConfig;
  readonly nodeId: NodeId;
  /** Kept up to date by the core; used by the transport. */
  readonly admission: Admission;
  readonly store: LogStore;
  readonly hash: Hash32;
  readonly clocks: Clocks;
  /** On the monotonic clock: a lower bound for the arrival of what is read from sockets now. */
  readonly listenerMillis: () => number;
  /** A random integer in [0, bound); bound up to 2^47. */
  readonly random: (bound: number) => number;
  /** Runs `fn` soon, after everything already queued. */
  readonly defer: (fn: () => void) => void;
  /** Runs `fn` after all deferred functions, so that their results leave together. */
  readonly gather: (fn: () => void) => void;
  /** Sends one frame to a peer; false if it was dropped. */
  readonly send: (to: NodeId, type: PeerFrameType, payload: Uint8Array) => boolean;
  /** There are connections to and from the peer, so it can be asked and can answer. */
  readonly isConnected: (peer: NodeId) => boolean;
  /** Load of this node, read once a second; absent: leaders do not gather. */
  readonly load?: () => NodeLoad;
  /** Called when leaders gather on another node, or (`NO_NODE`) are spread. */
  readonly leadersGather?: (target: NodeId) => void;
  /** Load shedding for forwarded requests; absent: only full queues refuse them. */
  readonly shedding?: SheddingOfForwarded;
  /** Usage figures of the listeners of this node; absent: nothing is counted. */
  readonly usage?: (query: UsageQuery, untilMinute: number) => NodeUsage;
  /** Called with each decision of a shadow rule about a request that all other rules let through. */
  readonly tried?: (ruleId: string, wouldAllow: boolean) => void;
  /** A peer reported the state of its groups. */
  readonly reported?: (report: NodeReport) => void;
  readonly leaderChanged: (partition: number, leader: NodeId) => void;
  /** The list of nodes was loaded or has changed, or other nodes are admitted. */
  readonly nodesChanged?: (state: MetaState, metaMembers: readonly NodeId[]) => void;
  /**
   * Called once: this node was removed, or has another database than the one recorded for its id. It takes part no
   * more.
   */
  readonly excluded?: (exclusion: Exclusion) => void;
  /** A partition that this node leads has applied an entry that was proposed here. */
  readonly timed?: ((partition: number, timing: EntryTiming) => void) | undefined;
  /** An operator starts or ends the draining of this node. */
  readonly drained?: (isDraining: boolean) => void;
  /** The verdict about this node's clock has changed. */
  readonly clockJudged?: (verdict: ClockVerdict) => void;
  /** A group was added to this node, before anything beyond `applied` is applied; for observers. */
  readonly groupAdded?: (group: GroupId, app: GroupApplication, applied: number) => void;
  /** Progress while loading: number of groups that are loaded. */
  readonly loaded?: (done: number, total: number) => void;
  /** A leader sent an invalid snapshot; it was dropped. */
  readonly snapshotRefused?: (group: GroupId, error: unknown) => void;
  /** The node begins or ends refusing requests for lack of capacity. */
  readonly refusingAtCapacity?: (isRefusing: boolean, report: CapacityReport) => void;
  /** Decisions by fail mode begin (`true`), or have ended after this many decisions. */
  readonly decidesDegraded?: (isDegraded: boolean, decisions: number) => void;
  /** Called once, when the node must stop speaking. */
  readonly fatal: (error: unknown) => void;
  readonly raft?: Partial<MultiRaftOptions>;
  /** Smaller queues, for tests that fill them. */
  readonly queues?: QueueBounds;
}

/** Bounds of the queues of a node; `openMax`: unanswered requests. See also `PartitionOptions`. */
export interface QueueBounds extends Pick<PartitionOptions, 'pendingMax' | 'inflightMax' | 'batchMax'> {
  readonly openMax: number;
}
