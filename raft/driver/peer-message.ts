/** What nodes say to each other: messages of groups, and the chunks of snapshots on their way. */
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

export type PeerMessage = GroupMessage | SnapshotChunk | SnapshotChunkAck;
