/** The messages that one driver sends to another in one turn, and a summary of them. */
import type { PeerMessage, SnapshotChunk } from '../../../raft/driver/peer-message.ts';
import type { GroupId, Message, NodeId } from '../../../raft/types.ts';

export interface Parcel {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: PeerMessage;
}

/** The core's message in it; undefined if it has none. */
export function messageOf({ message }: Parcel): Message | undefined {
  return message.kind === 'message' ? message.message : undefined;
}

/** The group that the message is about; undefined if it is about the whole node. */
export function groupOf({ message }: Parcel): GroupId | undefined {
  return 'group' in message ? message.group : undefined;
}

export function typeOf({ message }: Parcel): string {
  return message.kind === 'message' ? message.message.type : message.kind;
}

export function chunkOf({ message }: Parcel): SnapshotChunk | undefined {
  return message.kind === 'chunk' ? message : undefined;
}

/** True if the message asks for a vote. */
export function isCampaign(parcel: Parcel): boolean {
  return ['vote', 'preVote'].includes(typeOf(parcel));
}
