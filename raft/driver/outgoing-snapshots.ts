/**
 * Sends stored snapshots to nodes that are too far behind, chunk by chunk; each chunk waits for the acknowledgement of
 * the previous one. Bounded: a few streams per node, one chunk in flight per stream, and a rate in bytes per tick.
 *
 * A broken stream resumes: every stream begins with chunk 0, and its acknowledgement says how many chunks of this
 * snapshot the receiver already has. Neither side has to remember the other's state.
 */
import type { SnapshotChunk, SnapshotChunkAck } from './peer-message.ts';
import type { LogStore } from './store.ts';
import type { GroupId, InstallSnapshot, NodeId, SnapshotFate, SnapshotMeta } from '../types.ts';

/** The bounds on snapshot streams from one node. */
export interface SnapshotStreamOptions {
  /** The maximum number of streams from a node at the same time. */
  readonly outgoingMax: number;
  /** A stream ends if its peer does not answer for this many ticks. */
  readonly silentTicksMax: number;
  /**
   * The average rate of all streams of a node. A larger chunk leaves whole, and the next one waits longer. Unlimited if
   * absent.
   */
  readonly bytesPerTickMax?: number;
}

interface Outgoing {
  readonly group: GroupId;
  readonly to: NodeId;
  readonly meta: SnapshotMeta;
  readonly term: number;
  readonly timeMillis: number;
  /** The number of the chunk in flight; the receiver has those before it. */
  chunk: number;
  silentTicks: number;
  /** A chunk that was read and waits until the rate allows it. */
  held: SnapshotChunk | undefined;
}

type OutgoingDone = (group: GroupId, to: NodeId, fate: SnapshotFate) => void;

/** The snapshot streams that leave a node. */
export class OutgoingSnapshots {
  readonly #streams = new Map<string, Outgoing>();
  readonly #id: NodeId;
  readonly #store: LogStore;
  readonly #options: SnapshotStreamOptions;
  readonly #send: (to: NodeId, chunk: SnapshotChunk) => void;
  readonly #done: OutgoingDone;
  readonly #failed: (error: unknown) => void;
  readonly #bytesPerTick: number;
  /** Bytes that may leave before the next tick; negative if a large chunk has left early. */
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

  /** Starts a stream. `request` is the message of the leader's core, `meta` the snapshot that is actually stored. */
  start(group: GroupId, request: InstallSnapshot, meta: SnapshotMeta | undefined): void {
    const key = streamKey(group, request.to);
    // The peer ignores a stream of an earlier term.
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

  /** Handles an acknowledgement: sends the next chunk, or ends the stream. */
  acknowledged(ack: SnapshotChunkAck): void {
    const key = streamKey(ack.group, ack.from);
    const stream = this.#streams.get(key);
    if (stream === undefined || stream.meta.index !== ack.index || stream.meta.term !== ack.snapshotTerm)
      return;
    if (ack.held < stream.chunk || ack.held > stream.meta.chunkCount || stream.held !== undefined) return;
    stream.silentTicks = 0;
    // The receiver is still working on the chunk in flight.
    if (ack.held === stream.chunk) return;
    stream.chunk = ack.held;
    if (stream.chunk === stream.meta.chunkCount) this.#finish(key, stream, 'arrived');
    else this.#sendChunk(key, stream);
  }

  /** Counts a tick: releases chunks that waited for the rate, and ends silent streams. */
  tick(): void {
    this.#bytesLeft = Math.min(this.#bytesPerTick, this.#bytesLeft + this.#bytesPerTick);
    for (const [key, stream] of this.#streams) {
      if (stream.held !== undefined) {
        // This node delays the chunk, so the peer is not late.
        this.#release(stream);
        continue;
      }
      stream.silentTicks += 1;
      if (stream.silentTicks <= this.#options.silentTicksMax) continue;
      // A peer verifies a snapshot when it has all of it. If it is invalid, the peer does not acknowledge the last
      // chunk.
      const isLast = stream.chunk === stream.meta.chunkCount - 1;
      this.#finish(key, stream, isLast ? 'refused' : 'broken');
    }
  }

  /** The connection broke, so the chunk in flight is lost. The next stream resumes there. */
  peerLost(peer: NodeId): void {
    for (const [key, stream] of this.#streams) if (stream.to === peer) this.#finish(key, stream, 'broken');
  }

  /** Ends all streams of a group that this node no longer holds. */
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
