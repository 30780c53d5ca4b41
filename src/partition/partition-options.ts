/** The options and dependencies of a partition. */
import type { Clocks } from '../api/clocks.ts';
import type { EntryTiming } from './entry-timing.ts';
import type { ReadDone } from '../../raft/driver/group-application.ts';
import type { GroupClock } from '../../raft/driver/group-clock.ts';
import type { NodeId } from '../../raft/types.ts';
import { MAX_AHEAD_MILLIS_DEFAULT } from '../limiter/rules.ts';

/** The bounds of a partition. */
export interface PartitionOptions {
  /** Requests that may wait for a place in the log; more are refused as `overloaded`. */
  readonly pendingMax: number;
  /** Requests per log entry. */
  readonly batchMax: number;
  /** Requests that may be in the log and not applied yet. */
  readonly inflightMax: number;
  /** How far, in milliseconds, a caller's timestamp may be ahead of both group time and this node's wall clock. */
  readonly maxAheadMillis: number;
}

/** The options of a partition in production. */
export const PARTITION_DEFAULTS: PartitionOptions = {
  pendingMax: 32_768,
  batchMax: 4_096,
  inflightMax: 65_536,
  maxAheadMillis: MAX_AHEAD_MILLIS_DEFAULT,
};

/** Everything that a partition is created with. */
export interface PartitionInit extends Clocks {
  readonly partition: number;
  readonly nodeId: NodeId;
  readonly clock: GroupClock;
  readonly options: PartitionOptions;
  /** Asks the driver for a place in the log, soon. */
  readonly requestProposal: () => void;
  /** See `MultiRaft.readIndex`. */
  readonly readIndex: (done: ReadDone) => void;
  /** `leader` leads in `term`. NO_NODE: no leader is known to this replica. */
  readonly leaderChanged: (partition: number, leader: NodeId, term: number) => void;
  /** The replicas of this partition have changed. */
  readonly configChanged?: () => void;
  /** A request was refused for lack of room. */
  readonly refusedAtCapacity?: () => void;
  /** An entry that this node proposed as leader was applied. */
  readonly timed?: (timing: EntryTiming) => void;
  /** See `LimiterStateMachine`. */
  readonly hashSeed?: number;
}
