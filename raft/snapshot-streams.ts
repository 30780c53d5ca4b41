/**
 * Moves snapshots between nodes: reads stored chunks and sends them one at a time, each after the one before was
 * acknowledged; collects the chunks of an incoming one. Bounded: a few streams per node, one chunk in flight each.
 */
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { LogStore } from './store.ts';
import type { GroupId, InstallSnapshot, NodeId, SnapshotMeta } from './types.ts';

export interface SnapshotStreamOptions {
  /** At most this many snapshots leave a node at the same time. */
  readonly outgoingMax: number;
  /** A stream whose peer is silent for this many ticks is given up. */
  readonly silentTicksMax: number;
}

interface Outgoing {
  readonly group: GroupId;
  readonly to: NodeId;
  readonly meta: SnapshotMeta;
  readonly term: number;
  readonly timeMillis: number;
  chunk: number;
  silentTicks: number;
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
    const stream: Outgoing = { group, to, meta, term, timeMillis, chunk: 0, silentTicks: 0 };
    this.#streams.set(key, stream);
    this.#sendChunk(key, stream);
  }

  #sendChunk(key: string, stream: Outgoing): void {
    const { group, to, meta, term, timeMillis, chunk } = stream;
    this.#store.readSnapshotChunk(group, meta.index, chunk).then(
      (data) => {
        if (this.#streams.get(key) !== stream) return;
        if (data === undefined) {
          this.#finish(key, stream, false);
          return;
        }
        this.#send(to, { kind: 'chunk', group, from: this.#id, term, timeMillis, meta, chunk, data });
      },
      (error: unknown) => this.#failed(error),
    );
  }

  acknowledged(ack: SnapshotChunkAck): void {
    const key = streamKey(ack.group, ack.from);
    const stream = this.#streams.get(key);
    if (stream === undefined || stream.meta.index !== ack.index || stream.meta.term !== ack.snapshotTerm)
      return;
    if (ack.chunk !== stream.chunk) return;
    stream.silentTicks = 0;
    stream.chunk += 1;
    if (stream.chunk === stream.meta.chunkCount) this.#finish(key, stream, true);
    else this.#sendChunk(key, stream);
  }

  tick(): void {
    for (const [key, stream] of this.#streams) {
      stream.silentTicks += 1;
      if (stream.silentTicks > this.#options.silentTicksMax) this.#finish(key, stream, false);
    }
  }

  #finish(key: string, stream: Outgoing, arrived: boolean): void {
    this.#streams.delete(key);
    this.#done(stream.group, stream.to, arrived);
  }
}

function streamKey(group: GroupId, to: NodeId): string {
  return `${group}:${to}`;
}

/** Collects the chunks of snapshots that leaders send to this node; at most one per group. */
export class IncomingSnapshots {
  readonly #id: NodeId;
  readonly #partial = new Map<GroupId, { meta: SnapshotMeta; chunks: Uint8Array[]; bytes: number }>();

  constructor(id: NodeId) {
    this.#id = id;
  }

  /** Takes one chunk. Returns what to answer, and the complete snapshot when this was its last chunk. */
  receive(message: SnapshotChunk): {
    ack: SnapshotChunkAck | undefined;
    install: InstallSnapshot | undefined;
  } {
    const { group, meta, chunk, from } = message;
    let partial = this.#partial.get(group);
    if (chunk === 0 && (partial === undefined || !isSame(partial.meta, meta))) {
      partial = { meta, chunks: [], bytes: 0 };
      this.#partial.set(group, partial);
    }
    if (partial === undefined || !isSame(partial.meta, meta) || chunk > partial.chunks.length) {
      return { ack: undefined, install: undefined };
    }
    if (chunk === partial.chunks.length) {
      partial.bytes += message.data.byteLength;
      if (partial.bytes > meta.byteLength || chunk >= meta.chunkCount) {
        this.#partial.delete(group);
        return { ack: undefined, install: undefined };
      }
      partial.chunks.push(message.data);
    }
    const ack: SnapshotChunkAck = {
      kind: 'chunkAck',
      group,
      from: this.#id,
      index: meta.index,
      snapshotTerm: meta.term,
      chunk,
    };
    if (partial.chunks.length < meta.chunkCount) return { ack, install: undefined };
    this.#partial.delete(group);
    if (partial.bytes !== meta.byteLength) return { ack: undefined, install: undefined };
    const { term, timeMillis } = message;
    const { chunks } = partial;
    return { ack, install: { type: 'snapshot', from, to: this.#id, term, meta, timeMillis, chunks } };
  }
}

function isSame(a: SnapshotMeta, b: SnapshotMeta): boolean {
  return (
    a.index === b.index && a.term === b.term && a.byteLength === b.byteLength && a.chunkCount === b.chunkCount
  );
}
