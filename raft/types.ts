/**
 * The data types of the consensus layer: log entries, positions, hard state, snapshots and messages. No behaviour.
 */

/** Identifies a node of the cluster: a safe integer >= 1 that is never reused for another machine, or `NO_NODE`. */
export type NodeId = number;

/** Identifies one Raft group on all of its nodes: a safe integer >= 0. */
export type GroupId = number;

/** No node: no vote, no known leader, no transfer target. */
export const NO_NODE: NodeId = 0;

/**
 * The kinds of entries: a command for the state machine, the empty entry that a new leader begins with, or a
 * configuration, which takes effect when it is applied (membership.ts).
 */
export type EntryKind = 'command' | 'noop' | 'config';

/** The members of a group. */
export interface GroupConfig {
  /** The version of the cluster's placement that asked for this configuration: a whole number >= 0, 0 at the start. */
  readonly epoch: number;
  /** Voters count in quorums and may lead. */
  readonly voters: readonly NodeId[];
  /** The previous voters, while a change of voters is under way; they count as well. Otherwise empty. */
  readonly outgoing: readonly NodeId[];
  /** Learners receive the log and decide nothing. A learner that is also in `outgoing` is a voter being demoted. */
  readonly learners: readonly NodeId[];
}

/**
 * A place in the log and the group time of the entry there. Index 0 with term 0 is the place before the first
 * entry.
 */
export interface LogPosition {
  readonly index: number;
  readonly term: number;
  /** Group time in milliseconds, see raft/driver/group-clock.ts. Never decreases along a log. */
  readonly timeMillis: number;
}

/** One log entry. Immutable once made; `data` must not share memory with a receive buffer. */
export interface Entry extends LogPosition {
  readonly kind: EntryKind;
  readonly data: Uint8Array;
}

/**
 * The state that must be on disk before a node answers (Raft paper, figure 2, "persistent state"). `commit` is a
 * hint: it may lag behind, and never exceeds the last stored index.
 */
export interface HardState {
  readonly term: number;
  readonly vote: NodeId;
  readonly commit: number;
}

/** Describes a snapshot of the state after applying `index`. The bytes travel separately, in chunks. */
export interface SnapshotMeta extends LogPosition {
  /** The configuration at `index`, see GroupConfig. A missing list is empty, a missing epoch is 0. */
  readonly epoch?: number;
  readonly voters: readonly NodeId[];
  readonly outgoing?: readonly NodeId[];
  readonly learners?: readonly NodeId[];
  readonly chunkCount: number;
  readonly byteLength: number;
  /** CRC-32 of all chunks in order, computed by the node that took the snapshot. Absent in old snapshots. */
  readonly checksum?: number;
}

interface MessageBase {
  readonly from: NodeId;
  readonly to: NodeId;
  /** The sender's term; for `preVote` and a granted `preVoteResponse`, the term the candidate would campaign in. */
  readonly term: number;
}

/** A request for a vote, or for a pre-vote (Raft thesis, 9.6). */
export interface VoteRequest extends MessageBase {
  readonly type: 'preVote' | 'vote';
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** The leader itself asked for this election: do not protect it (Raft thesis, 3.10). */
  readonly isTransfer: boolean;
}

/** The answer to a request for a vote or a pre-vote. */
export interface VoteResponse extends MessageBase {
  readonly type: 'preVoteResponse' | 'voteResponse';
  readonly granted: boolean;
  /**
   * With a refusal: the last position the voter knows to be committed. Without it, a candidate that only lacks the
   * news that a change of members is committed could ask nodes forever that have left and never vote for it.
   */
  readonly committed?: { readonly index: number; readonly term: number };
}

/** A leader's AppendEntries (Raft paper, figure 2). */
export interface Append extends MessageBase {
  readonly type: 'append';
  readonly prevIndex: number;
  readonly prevTerm: number;
  readonly entries: readonly Entry[];
  readonly commit: number;
  /** The leader's group time when it made this message. */
  readonly timeMillis: number;
}

/** A follower's answer to an append. */
export interface AppendResponse extends MessageBase {
  readonly type: 'appendResponse';
  readonly rejected: boolean;
  /** Accepted: the index up to which sender and leader agree. Rejected: the `prevIndex` that did not match. */
  readonly index: number;
  /** Rejected: the leader should probe at or below this index, where the follower's term was `hintTerm`. */
  readonly hintIndex: number;
  readonly hintTerm: number;
}

/** A leader is alive. Carries no entries and needs no disk. */
export interface Heartbeat extends MessageBase {
  readonly type: 'heartbeat';
  readonly commit: number;
  readonly timeMillis: number;
  /** The number of the leader's last leadership check (read-index.ts); 0 if it never made one. */
  readonly readRound: number;
  /** The last index that the receiver acknowledged to this leader in this term; 0 if none. */
  readonly match: number;
}

/** A follower's answer to a heartbeat. */
export interface HeartbeatResponse extends MessageBase {
  readonly type: 'heartbeatResponse';
  /** Copied from the heartbeat. */
  readonly readRound: number;
  /** The sender would not take over the leadership now. */
  readonly isReluctant: boolean;
}

/**
 * The state up to `meta.index`, from one core to another. It does not travel in this form: the driver streams the
 * chunks of the stored snapshot, and passes this message to the receiving core when all of them are on its disk and
 * verified.
 */
export interface InstallSnapshot extends MessageBase {
  readonly type: 'snapshot';
  readonly meta: SnapshotMeta;
  readonly timeMillis: number;
}

/** A leader asks its chosen successor, whose log is complete, to campaign now. */
export interface TimeoutNow extends MessageBase {
  readonly type: 'timeoutNow';
}

/** All messages between two cores of one group. */
export type Message =
  | VoteRequest
  | VoteResponse
  | Append
  | AppendResponse
  | Heartbeat
  | HeartbeatResponse
  | InstallSnapshot
  | TimeoutNow;

/**
 * One replica's view of the group's replicated time. Implemented in raft/driver/group-clock.ts; the core only
 * drives it. All values are whole milliseconds of group time.
 */
export interface GroupClock {
  /** This replica's estimate of group time now. Never ahead of the timeline that it follows. */
  nowMillis(): number;
  /**
   * The timeline of `term` has reached at least `timeMillis`, now or `ageMillis` ago on this replica's clock. The
   * latest call counts. The core calls it with the last entry whenever that changes (except for further entries of
   * a leader's own term), and for a leader's message if the last entry is of that leader's term. See
   * raft/driver/group-clock.ts.
   */
  anchor(term: number, timeMillis: number, ageMillis?: number): void;
}

/** The state of a group on disk when its node starts. */
export interface StoredGroup {
  /** The version of the placement that last concerned this replica, see `GroupWrite`; 0 if none was recorded. */
  readonly placement: number;
  /** The version of the placement that last removed this replica; 0 if none did. */
  readonly removedAt: number;
  /** Whether only the tombstone is left: hard state and placement. */
  readonly removed: boolean;
  readonly hardState: HardState;
  /** The position before the first entry of the log: (0, 0, 0) until the log is first compacted. */
  readonly base: LogPosition;
  /** Contiguous from `base.index + 1`. */
  readonly entries: readonly Entry[];
  /** The current snapshot. Its chunks are read one by one with `readSnapshotChunk`. */
  readonly snapshot?: SnapshotMeta;
}

/**
 * How the sending of a snapshot ended:
 *
 * - `arrived`: the peer has installed it.
 * - `broken`: it was not begun, or the connection broke.
 * - `refused`: the peer is reachable but stopped answering, so it will not install it.
 */
export type SnapshotFate = 'arrived' | 'broken' | 'refused';
