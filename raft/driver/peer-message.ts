/** What nodes say to each other: messages of groups, the chunks of snapshots on their way, and beats for groups that rest. */
import type { GroupId, Message, NodeId, SnapshotMeta } from '../types.ts';

export interface GroupMessage {
  readonly kind: 'message';
  readonly group: GroupId;
  /** Never carries snapshot chunks: those travel as `chunk`. */
  readonly message: Message;
}

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

export interface SnapshotChunkAck {
  readonly kind: 'chunkAck';
  readonly group: GroupId;
  readonly from: NodeId;
  /** Which snapshot: its index and term. */
  readonly index: number;
  readonly snapshotTerm: number;
  /**
   * How many chunks the receiver holds on disk, from the first on: the next one to send. All of them only when the
   * snapshot is installed; until then this may be repeated, so that the sender knows that its last chunk has arrived.
   */
  readonly held: number;
}

/** A group that its leader lets rest: its log ends at `index`, all of it committed and acknowledged by every member. */
export interface IdleGroup {
  readonly group: GroupId;
  readonly term: number;
  readonly index: number;
  /** The leader's group time. */
  readonly timeMillis: number;
}

/**
 * Stands for a heartbeat in every group that the sender leads and lets rest, and of which the receiver is a member. The time
 * of such a group advances as `readingMillis` does: it was at least g + s - (r + 1) when a beat of the same process was made
 * that reads s, if the beat with its list had g and r. For r was read after g, and both are rounded down.
 */
export interface Beat {
  readonly kind: 'beat';
  readonly from: NodeId;
  /** Another number in each process of the sender. */
  readonly process: number;
  /** Of the list of these groups, counted from 1. */
  readonly version: number;
  /** The sender's own clock, which never runs back. */
  readonly readingMillis: number;
  /** The whole list; absent if the receiver has it. */
  readonly groups?: readonly IdleGroup[];
}

/** The receiver of a beat is there, and so is every group on the list, but for those that are `awake`. */
export interface BeatAnswer {
  readonly kind: 'beatAnswer';
  readonly from: NodeId;
  /** Of the beat. */
  readonly process: number;
  /** Of the list that the sender of this answer has; 0 if it has none. */
  readonly version: number;
  /** Those on that list that do not rest here, or are not here. */
  readonly awake: readonly GroupId[];
}

/** Of one group. */
export type GroupPeerMessage = GroupMessage | SnapshotChunk | SnapshotChunkAck;
export type PeerMessage = GroupPeerMessage | Beat | BeatAnswer;
