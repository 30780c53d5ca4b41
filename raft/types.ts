/**
 * The vocabulary of the consensus layer: log entries, positions, hard state, snapshots and messages.
 * Plain data only; nothing here has behaviour.
 */

/** Identifies a node in the cluster: a safe integer >= 1, never reused for another machine; or `NO_NODE`. */
export type NodeId = number;

/** Identifies one Raft group on all of its nodes: a safe integer >= 0. */
export type GroupId = number;

export const NO_NODE: NodeId = 0;

/**
 * What an entry carries: a command for the state machine, the empty entry each new leader begins with, or the
 * configuration of the group from when it is applied on (see membership.ts).
 */
export type EntryKind = 'command' | 'noop' | 'config';

/** Who belongs to a group. */
export interface GroupConfig {
  /** The version of the cluster's placement that asked for this configuration: a whole number >= 0, 0 at the start. */
  readonly epoch: number;
  /** Decide and may lead. */
  readonly voters: readonly NodeId[];
  /** While the voters are being changed: those before. They decide as well. Empty otherwise. */
  readonly outgoing: readonly NodeId[];
  /** Get everything and decide nothing. Those that are in `outgoing` too are voters that are being demoted. */
  readonly learners: readonly NodeId[];
}

/**
 * A place in the log, and the group time the entry there was stamped with.
 * `index` 0 with `term` 0 is the place before the first entry.
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
 * What must be on disk before a node may speak (Raft paper, figure 2, "persistent state").
 * `commit` is a hint: it may lag behind what the node knew, and never exceeds the last stored index.
 */
export interface HardState {
  readonly term: number;
  readonly vote: NodeId;
  readonly commit: number;
}

/** Describes a snapshot of the state machine after applying `index`. The bytes travel separately, in chunks. */
export interface SnapshotMeta extends LogPosition {
  /** The configuration of the group at `index`, see GroupConfig. A list that is absent is empty, an epoch is 0. */
  readonly epoch?: number;
  readonly voters: readonly NodeId[];
  readonly outgoing?: readonly NodeId[];
  readonly learners?: readonly NodeId[];
  readonly chunkCount: number;
  readonly byteLength: number;
  /** CRC-32 of all chunks in order, from the node that took the snapshot. Absent in snapshots taken without. */
  readonly checksum?: number;
}

interface MessageBase {
  readonly from: NodeId;
  readonly to: NodeId;
  /** The sender's term; for `preVote` and a granted `preVoteResponse`, the term the candidate would campaign in. */
  readonly term: number;
}

export interface VoteRequest extends MessageBase {
  readonly type: 'preVote' | 'vote';
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** The leader itself asked for this election: do not protect it (Raft thesis, 3.10). */
  readonly isTransfer: boolean;
}

export interface VoteResponse extends MessageBase {
  readonly type: 'preVoteResponse' | 'voteResponse';
  readonly granted: boolean;
  /**
   * With a refusal: what the voter knows to be committed. A candidate that lacks only the knowledge that a change of
   * the configuration is committed could otherwise go on asking nodes that left and will never vote for it.
   */
  readonly committed?: { readonly index: number; readonly term: number };
}

export interface Append extends MessageBase {
  readonly type: 'append';
  readonly prevIndex: number;
  readonly prevTerm: number;
  readonly entries: readonly Entry[];
  readonly commit: number;
  /** The leader's group time when it made this message. */
  readonly timeMillis: number;
}

export interface AppendResponse extends MessageBase {
  readonly type: 'appendResponse';
  readonly rejected: boolean;
  /** Accepted: the index up to which sender and leader agree. Rejected: the `prevIndex` that did not match. */
  readonly index: number;
  /** Rejected: the leader should probe at or below this index, where the follower's term was `hintTerm`. */
  readonly hintIndex: number;
  readonly hintTerm: number;
}

export interface Heartbeat extends MessageBase {
  readonly type: 'heartbeat';
  readonly commit: number;
  readonly timeMillis: number;
  /** The leader's last question whether it still leads (see read-index.ts). 0 if it never asked. */
  readonly readRound: number;
  /** What the receiver has acknowledged to this leader in this term. 0 if nothing. */
  readonly match: number;
}

export interface HeartbeatResponse extends MessageBase {
  readonly type: 'heartbeatResponse';
  /** That of the heartbeat. */
  readonly readRound: number;
  /** The sender would not take over now. */
  readonly isReluctant: boolean;
}

/**
 * Between two cores: "here is the state up to `meta.index`". It never travels as it is: the driver streams the chunks of
 * the stored snapshot, and hands this to the receiving core when all of them are on its disk, and sound.
 */
export interface InstallSnapshot extends MessageBase {
  readonly type: 'snapshot';
  readonly meta: SnapshotMeta;
  readonly timeMillis: number;
}

/** From a leader to its chosen successor, whose log is complete: campaign now. */
export interface TimeoutNow extends MessageBase {
  readonly type: 'timeoutNow';
}

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
 * The group's replicated time, seen from one replica. Implemented in raft/driver/group-clock.ts; the core only drives it.
 * All values are whole milliseconds of group time.
 */
export interface GroupClock {
  /** This replica's estimate now. Never ahead of the timeline it is anchored to. */
  nowMillis(): number;
  /**
   * The timeline of `term` had reached at least `timeMillis` at this moment, or `ageMillis` ago on this replica's clock. Called with the last entry's term and
   * time whenever that entry changes, but not for the further entries of a leader's own term, and for every message
   * of a leader whose term equals the term of the last entry. The latest call counts: see raft/driver/group-clock.ts.
   */
  anchor(term: number, timeMillis: number, ageMillis?: number): void;
}

/** What a group finds on disk when its node starts. */
export interface StoredGroup {
  /** See `GroupWrite` of the driver. 0 if none was recorded. */
  readonly placement: number;
  /** The placement that removed this replica the last time; 0 if none did. */
  readonly removedAt: number;
  /** Only the tombstone is left: hard state and placement. */
  readonly removed: boolean;
  readonly hardState: HardState;
  /** The position before the first entry of the log: (0, 0, 0) until the log is first compacted. */
  readonly base: LogPosition;
  /** Contiguous from `base.index + 1`. */
  readonly entries: readonly Entry[];
  /** Its chunks are read one by one: see `readSnapshotChunk`. */
  readonly snapshot?: SnapshotMeta;
}

/**
 * What became of a snapshot that a leader sends.
 * - `arrived`: the peer has installed it
 * - `broken`: it was not begun, or what it travelled on broke
 * - `refused`: the peer, which is there, answered no more: it will not install it
 */
export type SnapshotFate = 'arrived' | 'broken' | 'refused';
