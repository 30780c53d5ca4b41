/** Snapshots that were spoiled before their checksum was made: only the state machine that reads them can tell. */
import { crc32 } from 'node:zlib';
import type { PeerMessage, SnapshotChunk } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';

/** A turn's messages, those of snapshots changed. That of group 0 has no digest of its own to tell by. */
export function withUnsound(payload: Uint8Array, from: NodeId, to: NodeId): Uint8Array {
  const messages = decodePeerMessages(payload, from, to);
  if (!messages.some(isSpoiled)) return payload;
  const [changed] = encodePeerMessages(
    messages.map((message) => (isSpoiled(message) ? unsound(message) : message)),
  );
  return changed ?? payload;
}

function isSpoiled(message: PeerMessage): message is SnapshotChunk {
  return message.kind === 'chunk' && message.group !== META_GROUP && message.meta.byteLength > 0;
}

/** The first bit of the snapshot is another, and the checksum is right for that. */
function unsound(message: SnapshotChunk): SnapshotChunk {
  const { meta, chunk } = message;
  const data = message.data.slice();
  if (chunk === 0) data[0] = (data[0] ?? 0) ^ 1;
  // CRCs are linear: what a change does to one does not depend on the rest.
  const change = Buffer.alloc(meta.byteLength);
  const unchanged = crc32(change);
  change[0] = 1;
  const checksum = ((meta.checksum ?? 0) ^ crc32(change) ^ unchanged) >>> 0;
  return { ...message, meta: { ...meta, checksum }, data };
}
