/**
 * The messages between nodes: Raft messages of groups, chunks of snapshots, and beats for groups that rest. src/wire
 * encodes them.
 */
import type { GroupId, Message, NodeId, SnapshotMeta } from '../types.ts';

/** A Raft message of one group. */
export interface GroupMessage {
  readonly kind: 'message';
  readonly group: GroupId;
  /** Never of type `snapshot`: snapshots travel as `chunk`. */
  readonly message: Message;
}

/** One chunk of a snapshot, from a leader. */
export interface SnapshotChunk {
  readonly kind: 'chunk';
  readonly group: GroupId;
  readonly from: NodeId;
  /** The term of the leader that sends it. */
  readonly term: number;
  /** The leader's group time when it made this message. */
  readonly timeMillis: number;
  readonly meta: SnapshotMeta;
  /** 0-based. */
  readonly chunk: number;
  readonly data: Uint8Array;
}

/** The answer to a chunk. */
export interface SnapshotChunkAck {
  readonly kind: 'chunkAck';
  readonly group: GroupId;
  readonly from: NodeId;
  /** The snapshot, by its index and term. */
  readonly index: number;
  readonly snapshotTerm: number;
  /**
   * The number of chunks that the receiver has on disk, counted from the first: the next one to send. All of them only
   * when the snapshot is installed; until then this may be repeated, to say that the last chunk has arrived.
   */
  readonly held: number;
}

/**
 * A group that its leader lets rest. Its log ends at `index`; all of it is committed and acknowledged by every member.
 */
export interface IdleGroup {
  readonly group: GroupId;
  readonly term: number;
  readonly index: number;
  /** The leader's group time, in milliseconds. */
  readonly timeMillis: number;
}

/**
 * Replaces a heartbeat in every resting group that the sender leads and the receiver is a member of. The group time of
 * these groups advances with `readingMillis`: let the beat with the list say group time g and reading r. When the same
 * process sends a beat with reading s, group time is at least g + s - (r + 1), because r was read after g and both are
 * rounded down.
 */
export interface Beat {
  readonly kind: 'beat';
  readonly from: NodeId;
  /** A number that differs between processes of the sender. */
  readonly process: number;
  /** The version of the list of these groups, counted from 1. */
  readonly version: number;
  /** The sender's monotonic clock. */
  readonly readingMillis: number;
  /** The whole list; absent if the receiver has this version. */
  readonly groups?: readonly IdleGroup[];
}

/** The receiver of a beat is alive, and so is every group on the list except those in `awake`. */
export interface BeatAnswer {
  readonly kind: 'beatAnswer';
  readonly from: NodeId;
  /** Copied from the beat. */
  readonly process: number;
  /** The version of the list that the sender of this answer has; 0 if none. */
  readonly version: number;
  /** The groups on that list that do not rest here or are not on this node. */
  readonly awake: readonly GroupId[];
}

/** A message about one group. */
export type GroupPeerMessage = GroupMessage | SnapshotChunk | SnapshotChunkAck;
/** Every message between two nodes. */
export type PeerMessage = GroupPeerMessage | Beat | BeatAnswer;
