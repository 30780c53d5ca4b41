/** What one driver sends another, and what is in it. */
import type { PeerMessage, SnapshotChunk } from '../../../raft/driver/peer-message.ts';
import type { Message, NodeId } from '../../../raft/types.ts';

export interface Parcel {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: PeerMessage;
}

/** The message of a core that it carries, if it does. */
export function messageOf({ message }: Parcel): Message | undefined {
  return message.kind === 'message' ? message.message : undefined;
}

export function typeOf({ message }: Parcel): string {
  return message.kind === 'message' ? message.message.type : message.kind;
}

export function chunkOf({ message }: Parcel): SnapshotChunk | undefined {
  return message.kind === 'chunk' ? message : undefined;
}

/** Asks for a vote. */
export function isCampaign(parcel: Parcel): boolean {
  return ['vote', 'preVote'].includes(typeOf(parcel));
}
