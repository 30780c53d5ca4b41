/**
 * Sends stored snapshots to nodes that are too far behind: chunk by chunk, each after the one before was acknowledged.
 * Bounded: a few streams per node, one chunk in flight each, so many bytes per tick.
 *
 * A stream that broke is resumed: every stream begins with chunk 0, and its acknowledgement says how many chunks the
 * receiver holds of this very snapshot. Neither side has to remember the other's state.
 */
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { LogStore } from './store.ts';
import type { GroupId, InstallSnapshot, NodeId, SnapshotFate, SnapshotMeta } from '../types.ts';

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
  /** The one in flight; the receiver holds those before it. */
  chunk: number;
  silentTicks: number;
  /** Read, and waiting for its share of the rate. */
  held: SnapshotChunk | undefined;
}

type OutgoingDone = (group: GroupId, to: NodeId, fate: SnapshotFate) => void;

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
    // The peer does not answer a stream of an earlier term.
    if ((this.#streams.get(key)?.term ?? request.term) < request.term) this.#streams.delete(key);
    if (meta === undefined || this.#streams.has(key) || this.#streams.size >= this.#options.outgoingMax) {
      this.#done(group, request.to, 'broken');
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
          this.#finish(key, stream, 'broken');
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
    if (ack.held < stream.chunk || ack.held > stream.meta.chunkCount || stream.held !== undefined) return;
    stream.silentTicks = 0;
    // It is at work on the one in flight.
    if (ack.held === stream.chunk) return;
    stream.chunk = ack.held;
    if (stream.chunk === stream.meta.chunkCount) this.#finish(key, stream, 'arrived');
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
      if (stream.silentTicks <= this.#options.silentTicksMax) continue;
      // A peer finds out that a snapshot is unsound when it has all of it: then it does not acknowledge the last chunk.
      const isLast = stream.chunk === stream.meta.chunkCount - 1;
      this.#finish(key, stream, isLast ? 'refused' : 'broken');
    }
  }

  /** The connection broke: what was sent last is lost. The next stream takes up where this one ended. */
  peerLost(peer: NodeId): void {
    for (const [key, stream] of this.#streams) if (stream.to === peer) this.#finish(key, stream, 'broken');
  }

  /** This node does not hold the group any more. */
  forget(group: GroupId): void {
    for (const [key, stream] of this.#streams) if (stream.group === group) this.#streams.delete(key);
  }

  #finish(key: string, stream: Outgoing, fate: SnapshotFate): void {
    this.#streams.delete(key);
    this.#done(stream.group, stream.to, fate);
  }
}

function streamKey(group: GroupId, to: NodeId): string {
  return `${group}:${to}`;
}
