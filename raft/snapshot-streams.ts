/**
 * Moves snapshots between nodes: reads stored chunks and sends them one at a time, each after the one before was
 * acknowledged; collects the chunks of an incoming one. Bounded: a few streams per node, one chunk in flight each,
 * so many bytes per tick.
 *
 * A stream that broke is resumed: every stream begins with chunk 0, and its acknowledgement names the last chunk the
 * receiver holds of this very snapshot. Neither side has to remember the other's state.
 */
import { crc32 } from './checksum.ts';
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { LogStore } from './store.ts';
import type { GroupId, InstallSnapshot, NodeId, SnapshotMeta } from './types.ts';

export interface SnapshotStreamOptions {
  /** At most this many snapshots leave a node at the same time. */
  readonly outgoingMax: number;
  /** A stream whose peer is silent for this many ticks is given up. */
  readonly silentTicksMax: number;
  /**
   * Snapshots leave a node at no more than this rate, on average: a chunk that is larger leaves whole and the next
   * one waits longer. No bound if absent.
   */
  readonly bytesPerTickMax?: number;
}

interface Outgoing {
  readonly group: GroupId;
  readonly to: NodeId;
  readonly meta: SnapshotMeta;
  readonly term: number;
  readonly timeMillis: number;
  chunk: number;
  silentTicks: number;
  /** Read, and waiting for its share of the rate. */
  held: SnapshotChunk | undefined;
}

type OutgoingDone = (group: GroupId, to: NodeId, arrived: boolean) => void;

export class OutgoingSnapshots {
  readonly #streams = new Map<string, Outgoing>();
  readonly #id: NodeId;
  readonly #store: LogStore;
  readonly #options: SnapshotStreamOptions;
  readonly #send: (to: NodeId, chunk: SnapshotChunk) => void;
  readonly #done: OutgoingDone;
  readonly #failed: (error: unknown) => void;
  readonly #bytesPerTick: number;
  /** What may leave before the next tick. Below 0: what left too early. */
  #bytesLeft: number;

  constructor(init: {
    id: NodeId;
    store: LogStore;
    options: SnapshotStreamOptions;
    send: (to: NodeId, chunk: SnapshotChunk) => void;
    done: OutgoingDone;
    failed: (error: unknown) => void;
  }) {
    this.#id = init.id;
    this.#store = init.store;
    this.#options = init.options;
    this.#send = init.send;
    this.#done = init.done;
    this.#failed = init.failed;
    this.#bytesPerTick = init.options.bytesPerTickMax ?? Number.POSITIVE_INFINITY;
    this.#bytesLeft = this.#bytesPerTick;
  }

  isSending(group: GroupId): boolean {
    for (const stream of this.#streams.values()) if (stream.group === group) return true;
    return false;
  }

  /** `request` is what the leader's core sent; `meta` is the snapshot that is really stored. */
  start(group: GroupId, request: InstallSnapshot, meta: SnapshotMeta | undefined): void {
    const key = streamKey(group, request.to);
    if (meta === undefined || this.#streams.has(key) || this.#streams.size >= this.#options.outgoingMax) {
      this.#done(group, request.to, false);
      return;
    }
    const { to, term, timeMillis } = request;
    const stream: Outgoing = { group, to, meta, term, timeMillis, chunk: 0, silentTicks: 0, held: undefined };
    this.#streams.set(key, stream);
    this.#sendChunk(key, stream);
  }

  #sendChunk(key: string, stream: Outgoing): void {
    const { group, meta, term, timeMillis, chunk } = stream;
    this.#store.readSnapshotChunk(group, meta.index, chunk).then(
      (data) => {
        if (this.#streams.get(key) !== stream || stream.chunk !== chunk) return;
        if (data === undefined) {
          this.#finish(key, stream, false);
          return;
        }
        stream.held = { kind: 'chunk', group, from: this.#id, term, timeMillis, meta, chunk, data };
        this.#release(stream);
      },
      (error: unknown) => this.#failed(error),
    );
  }

  #release(stream: Outgoing): void {
    if (stream.held === undefined || this.#bytesLeft <= 0) return;
    this.#bytesLeft -= stream.held.data.byteLength;
    this.#send(stream.to, stream.held);
    stream.held = undefined;
  }

  acknowledged(ack: SnapshotChunkAck): void {
    const key = streamKey(ack.group, ack.from);
    const stream = this.#streams.get(key);
    if (stream === undefined || stream.meta.index !== ack.index || stream.meta.term !== ack.snapshotTerm)
      return;
    if (ack.chunk < stream.chunk || ack.chunk >= stream.meta.chunkCount || stream.held !== undefined) return;
    stream.silentTicks = 0;
    stream.chunk = ack.chunk + 1;
    if (stream.chunk === stream.meta.chunkCount) this.#finish(key, stream, true);
    else this.#sendChunk(key, stream);
  }

  tick(): void {
    this.#bytesLeft = Math.min(this.#bytesPerTick, this.#bytesLeft + this.#bytesPerTick);
    for (const [key, stream] of this.#streams) {
      if (stream.held !== undefined) {
        // It is not the peer who is late.
        this.#release(stream);
        continue;
      }
      stream.silentTicks += 1;
      if (stream.silentTicks > this.#options.silentTicksMax) this.#finish(key, stream, false);
    }
  }

  /** The connection broke: what was sent last is lost. The next stream takes up where this one ended. */
  peerLost(peer: NodeId): void {
    for (const [key, stream] of this.#streams) if (stream.to === peer) this.#finish(key, stream, false);
  }

  /** This node does not hold the group any more. */
  forget(group: GroupId): void {
    for (const [key, stream] of this.#streams) if (stream.group === group) this.#streams.delete(key);
  }

  #finish(key: string, stream: Outgoing, arrived: boolean): void {
    this.#streams.delete(key);
    this.#done(stream.group, stream.to, arrived);
  }
}

function streamKey(group: GroupId, to: NodeId): string {
  return `${group}:${to}`;
}

interface Partial {
  readonly meta: SnapshotMeta;
  readonly chunks: Uint8Array[];
  bytes: number;
  checksum: number;
  silentTicks: number;
}

/** Collects the chunks of snapshots that leaders send to this node; at most one per group. */
export class IncomingSnapshots {
  readonly #id: NodeId;
  readonly #partial = new Map<GroupId, Partial>();

  constructor(id: NodeId) {
    this.#id = id;
  }

  forget(group: GroupId): void {
    this.#partial.delete(group);
  }

  /** Time passed. What nobody has sent a chunk of for `silentTicksMax` will hardly be resumed: its memory is freed. */
  tick(silentTicksMax: number): void {
    for (const [group, partial] of this.#partial) {
      partial.silentTicks += 1;
      if (partial.silentTicks > silentTicksMax) this.#partial.delete(group);
    }
  }

  /** Takes one chunk. Returns what to answer, and the complete snapshot when this was its last chunk. */
  receive(message: SnapshotChunk): {
    ack: SnapshotChunkAck | undefined;
    install: InstallSnapshot | undefined;
  } {
    const { group, meta, chunk, from } = message;
    let partial = this.#partial.get(group);
    if (chunk === 0 && (partial === undefined || !isSame(partial.meta, meta))) {
      partial = { meta, chunks: [], bytes: 0, checksum: 0, silentTicks: 0 };
      this.#partial.set(group, partial);
    }
    if (partial === undefined || !isSame(partial.meta, meta) || chunk > partial.chunks.length) {
      return { ack: undefined, install: undefined };
    }
    partial.silentTicks = 0;
    if (chunk === partial.chunks.length) {
      partial.bytes += message.data.byteLength;
      if (partial.bytes > meta.byteLength || chunk >= meta.chunkCount) {
        this.#partial.delete(group);
        return { ack: undefined, install: undefined };
      }
      partial.chunks.push(message.data);
      partial.checksum = crc32(message.data, partial.checksum);
    }
    const ack: SnapshotChunkAck = {
      kind: 'chunkAck',
      group,
      from: this.#id,
      index: meta.index,
      snapshotTerm: meta.term,
      chunk: partial.chunks.length - 1,
    };
    if (partial.chunks.length < meta.chunkCount) return { ack, install: undefined };
    this.#partial.delete(group);
    // Not what the meta promises: forget it all, and let the stream begin again.
    const isWhole =
      partial.bytes === meta.byteLength &&
      (meta.checksum === undefined || meta.checksum === partial.checksum);
    if (!isWhole) return { ack: undefined, install: undefined };
    const { term, timeMillis } = message;
    const { chunks } = partial;
    return { ack, install: { type: 'snapshot', from, to: this.#id, term, meta, timeMillis, chunks } };
  }
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
