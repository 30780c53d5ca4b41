/**
 * Snapshots that leaders send to this node. Each chunk is staged on disk with the next write, and acknowledged when it is
 * there, so no more than one chunk of each is ever in memory. When all are staged the snapshot is read back, chunk by
 * chunk, into a state beside the present one, and checked (see snapshot-restores.ts); only then the core hears of it.
 *
 * The acknowledgement of the last chunk leaves when the snapshot is installed: the leader would go on where it thinks
 * the log is, and find it is not there yet. Until then the one before is repeated, to keep the stream alive.
 */
import type { Group } from './group.ts';
import { IncomingSnapshot } from './incoming-snapshot.ts';
import { CHUNK_BYTES_MAX } from './local-snapshots.ts';
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { NodeId, SnapshotMeta } from '../types.ts';

/** Chunks that came and are not on disk, of all groups. What would be more is dropped; its sender tries again. */
const WAITING_BYTES_MAX = 8 << 20;

interface IncomingSnapshotsInit {
  readonly answer: (to: NodeId, ack: SnapshotChunkAck) => void;
  /** There is a chunk to write. */
  readonly activate: (group: Group) => void;
  /** All chunks are on disk, and are those that the leader sent. */
  readonly complete: (group: Group, incoming: IncomingSnapshot) => void;
}

/** Those of all groups of a node, one for each group at most. */
export class IncomingSnapshots {
  readonly #init: IncomingSnapshotsInit;
  /** Those that have one. */
  readonly #groups = new Set<Group>();

  constructor(init: IncomingSnapshotsInit) {
    this.#init = init;
  }

  receive(group: Group, message: SnapshotChunk): void {
    const { core } = group;
    const isNeeded = core.isInstalling || core.needsSnapshot(message.meta);
    if (message.term < core.term || !isNeeded) {
      this.#decline(group, message);
      return;
    }
    const incoming = this.#incomingOf(group, message);
    if (incoming === undefined || incoming.waitingBytes > 0 || !this.#hasRoomFor(message)) return;
    if (!incoming.isStaged && incoming.exceeds(message)) {
      this.forget(group);
      return;
    }
    incoming.heard(message);
    if (incoming.takes(message)) this.#init.activate(group);
    else this.#init.answer(message.from, ackOf(group, incoming));
  }

  /** The core answers instead: with its term, or with what it holds. */
  #decline(group: Group, message: SnapshotChunk): void {
    const { core } = group;
    const declined = new IncomingSnapshot(message);
    if (message.term >= core.term) this.#init.answer(message.from, ackOf(group, declined, true));
    core.step(declined.message(core.id));
    if (group.incoming !== undefined && !core.needsSnapshot(group.incoming.meta)) this.forget(group);
  }

  /** The snapshot that this chunk belongs to, or begins; undefined if it does neither. */
  #incomingOf(group: Group, message: SnapshotChunk): IncomingSnapshot | undefined {
    const { incoming } = group;
    if (incoming !== undefined && isSame(incoming.meta, message.meta)) return incoming;
    const mayBegin = message.chunk === 0 && message.meta.chunkCount > 0 && !group.core.isInstalling;
    if (!mayBegin || (incoming !== undefined && incoming.term > message.term)) return undefined;
    // It will be newer than what this node could write down of its own state.
    group.snapshots.abandon();
    group.incoming = new IncomingSnapshot(message);
    this.#groups.add(group);
    return group.incoming;
  }

  #hasRoomFor({ data }: SnapshotChunk): boolean {
    let bytes = data.byteLength;
    for (const { incoming } of this.#groups) bytes += incoming?.waitingBytes ?? 0;
    return data.byteLength <= CHUNK_BYTES_MAX && bytes <= WAITING_BYTES_MAX;
  }

  /** The chunk of `incoming` that waited is on disk. */
  staged(group: Group, incoming: IncomingSnapshot): void {
    // It may have been given up, or replaced, during the write.
    if (group.incoming !== incoming) return;
    if (!incoming.staged()) this.forget(group);
    else if (incoming.isStaged) this.#init.complete(group, incoming);
    else this.#init.answer(incoming.sender, ackOf(group, incoming));
  }

  /** The group has what the snapshot holds. */
  finished(group: Group): void {
    const { incoming } = group;
    if (incoming === undefined) return;
    this.#init.answer(incoming.sender, ackOf(group, incoming, true));
    this.forget(group);
  }

  /** What came of it is of no use: what is on disk is garbage. */
  forget(group: Group): void {
    group.incoming = undefined;
    this.#groups.delete(group);
  }

  /** Tells the senders of snapshots that are complete, and not installed yet, that their streams live. */
  keepAlive(): void {
    for (const group of this.#groups) {
      const { incoming } = group;
      if (incoming?.isStaged === true) this.#init.answer(incoming.sender, ackOf(group, incoming));
    }
  }

  /**
   * Time passed. What the group has come to hold by other means is not needed, and what nobody has sent a chunk of for
   * `silentTicksMax` will hardly be resumed.
   */
  tick(silentTicksMax: number): void {
    for (const group of this.#groups) {
      const { incoming } = group;
      if (incoming === undefined || incoming.isStaged) continue;
      incoming.silentTicks += 1;
      const isOvertaken = !group.core.needsSnapshot(incoming.meta);
      if (isOvertaken || incoming.silentTicks > silentTicksMax) this.forget(group);
    }
  }
}

function ackOf({ id, core }: Group, incoming: IncomingSnapshot, isInstalled = false): SnapshotChunkAck {
  const { index, term } = incoming.meta;
  const held = incoming.heldChunks(isInstalled);
  return { kind: 'chunkAck', group: id, from: core.id, index, snapshotTerm: term, held };
}

function isSame(a: SnapshotMeta, b: SnapshotMeta): boolean {
  return (
    a.index === b.index &&
    a.term === b.term &&
    a.byteLength === b.byteLength &&
    a.chunkCount === b.chunkCount &&
    a.checksum === b.checksum
  );
}
