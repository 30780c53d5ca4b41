/**
 * Snapshots that were damaged before their checksum was computed: only the state machine that reads them can notice.
 */
import { crc32 } from 'node:zlib';
import type { PeerMessage, SnapshotChunk } from '../../raft/driver/peer-message.ts';
import type { NodeId } from '../../raft/types.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { decodePeerMessages, encodePeerMessages } from '../../src/wire/peer-messages.ts';

/**
 * Damages the snapshots among one turn's messages. The snapshot of group 0 stays: it has no digest that would reveal
 * the damage.
 */
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

/** Flips the first bit of the snapshot and corrects the checksum. */
function unsound(message: SnapshotChunk): SnapshotChunk {
  const { meta, chunk } = message;
  const data = message.data.slice();
  if (chunk === 0) data[0] = (data[0] ?? 0) ^ 1;
  // CRCs are linear: the effect of a change does not depend on the rest.
  const change = Buffer.alloc(meta.byteLength);
  const unchanged = crc32(change);
  change[0] = 1;
  const checksum = ((meta.checksum ?? 0) ^ crc32(change) ^ unchanged) >>> 0;
  return { ...message, meta: { ...meta, checksum }, data };
}
