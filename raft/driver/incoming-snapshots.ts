/**
 * Receives the snapshots that leaders send to this node. Each chunk is staged on disk with the next write and then
 * acknowledged, so at most one chunk per snapshot is in memory. When all are staged, the snapshot is read back chunk by
 * chunk into a second state and verified (snapshot-restores.ts). Only then the core receives it.
 *
 * The last chunk is acknowledged only when the snapshot is installed. Earlier, the leader would send appends that the
 * follower cannot use yet. Until then the previous acknowledgement is repeated, to keep the stream alive.
 */
import type { Group } from './group.ts';
import { IncomingSnapshot } from './incoming-snapshot.ts';
import { CHUNK_BYTES_MAX } from './local-snapshots.ts';
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { NodeId, SnapshotMeta } from '../types.ts';

/** The bound for chunks of all groups that are not on disk yet. More chunks are dropped; their senders try again. */
const WAITING_BYTES_MAX = 8 << 20;

interface IncomingSnapshotsInit {
  readonly answer: (to: NodeId, ack: SnapshotChunkAck) => void;
  /** The group has a chunk to write. */
  readonly activate: (group: Group) => void;
  /** All chunks are on disk, and their checksum is right. */
  readonly complete: (group: Group, incoming: IncomingSnapshot) => void;
}

/** The incoming snapshots of all groups of a node, at most one per group. */
export class IncomingSnapshots {
  readonly #init: IncomingSnapshotsInit;
  /** The groups with an incoming snapshot. */
  readonly #groups = new Set<Group>();

  constructor(init: IncomingSnapshotsInit) {
    this.#init = init;
  }

  /** Handles one chunk from a leader. */
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

  /** The snapshot is not needed: let the core answer with its term or with what it has. */
  #decline(group: Group, message: SnapshotChunk): void {
    const { core } = group;
    const declined = new IncomingSnapshot(message);
    if (message.term >= core.term) this.#init.answer(message.from, ackOf(group, declined, true));
    core.step(declined.message(core.id));
    if (group.incoming !== undefined && !core.needsSnapshot(group.incoming.meta)) this.forget(group);
  }

  /** The snapshot that this chunk belongs to or begins; undefined if neither. */
  #incomingOf(group: Group, message: SnapshotChunk): IncomingSnapshot | undefined {
    const { incoming } = group;
    if (incoming !== undefined && isSame(incoming.meta, message.meta)) return incoming;
    const mayBegin = message.chunk === 0 && message.meta.chunkCount > 0 && !group.core.isInstalling;
    if (!mayBegin || (incoming !== undefined && incoming.term > message.term)) return undefined;
    // It will be newer than this node's own snapshot.
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

  /** The waiting chunk of `incoming` is on disk. */
  staged(group: Group, incoming: IncomingSnapshot): void {
    // It may have been dropped or replaced during the write.
    if (group.incoming !== incoming) return;
    if (!incoming.staged()) this.forget(group);
    else if (incoming.isStaged) this.#init.complete(group, incoming);
    else this.#init.answer(incoming.sender, ackOf(group, incoming));
  }

  /** The group has everything in the snapshot: acknowledge all of it. */
  finished(group: Group): void {
    const { incoming } = group;
    if (incoming === undefined) return;
    this.#init.answer(incoming.sender, ackOf(group, incoming, true));
    this.forget(group);
  }

  /** Drops the snapshot. Its chunks on disk become garbage. */
  forget(group: Group): void {
    group.incoming = undefined;
    this.#groups.delete(group);
  }

  /**
   * Repeats acknowledgements for snapshots that are staged but not installed, so that their senders keep the streams
   * open.
   */
  keepAlive(): void {
    for (const group of this.#groups) {
      const { incoming } = group;
      if (incoming?.isStaged === true) this.#init.answer(incoming.sender, ackOf(group, incoming));
    }
  }

  /**
   * Counts a tick. Drops snapshots that the group no longer needs, and those without a message for `silentTicksMax`
   * ticks.
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
