/**
 * One snapshot that a leader sends to a group of this node: which chunks are on disk, and which one is to be written.
 * It neither writes nor answers; see incoming-snapshots.ts.
 */
import { crc32 } from './checksum.ts';
import type { SnapshotChunk } from './peer-message.ts';
import type { StagedChunks } from './store.ts';
import type { InstallSnapshot, NodeId, SnapshotMeta } from '../types.ts';

/** The header of the last message. Its data is not kept: that would be a second chunk in memory. */
interface Heard {
  readonly from: NodeId;
  readonly term: number;
  readonly timeMillis: number;
}

/** The state of one incoming snapshot. */
export class IncomingSnapshot {
  readonly meta: SnapshotMeta;
  #last: Heard;
  /** The number of chunks on disk. */
  #staged = 0;
  #stagedBytes = 0;
  #checksum = 0;
  /** The chunk that arrived and is not on disk yet. */
  #waiting: Uint8Array | undefined;
  silentTicks = 0;

  constructor(first: SnapshotChunk) {
    const { meta, from, term, timeMillis } = first;
    this.meta = meta;
    this.#last = { from, term, timeMillis };
  }

  get sender(): NodeId {
    return this.#last.from;
  }
  get term(): number {
    return this.#last.term;
  }
  get waitingBytes(): number {
    return this.#waiting?.byteLength ?? 0;
  }
  /** All chunks are on disk. */
  get isStaged(): boolean {
    return this.#staged === this.meta.chunkCount;
  }

  /** A message of the stream arrived. */
  heard({ from, term, timeMillis }: SnapshotChunk): void {
    this.silentTicks = 0;
    if (term >= this.term) this.#last = { from, term, timeMillis };
  }

  /** Whether this chunk would exceed the size of the whole snapshot. */
  exceeds({ chunk, data }: SnapshotChunk): boolean {
    return chunk === this.#staged && this.#stagedBytes + data.byteLength > this.meta.byteLength;
  }

  /** Accepts the message if it carries the next chunk and no other chunk waits. Returns whether it did. */
  takes({ chunk, data }: SnapshotChunk): boolean {
    if (chunk !== this.#staged || this.#waiting !== undefined || this.isStaged) return false;
    this.#waiting = data;
    return true;
  }

  /** The chunk that the next write stages. */
  get toStage(): StagedChunks | undefined {
    if (this.#waiting === undefined) return undefined;
    return { index: this.meta.index, first: this.#staged, chunks: [this.#waiting] };
  }

  /**
   * The waiting chunk is on disk. Returns false if size or checksum show that these are not the chunks of the snapshot.
   */
  staged(): boolean {
    const data = this.#waiting ?? new Uint8Array(0);
    this.#waiting = undefined;
    this.#staged += 1;
    this.#stagedBytes += data.byteLength;
    this.#checksum = crc32(data, this.#checksum);
    const { byteLength, checksum } = this.meta;
    if (!this.isStaged) return true;
    return this.#stagedBytes === byteLength && (checksum === undefined || checksum === this.#checksum);
  }

  /** The number of chunks to acknowledge: all of them only when the snapshot is installed. */
  heldChunks(isInstalled: boolean): number {
    const { chunkCount } = this.meta;
    return isInstalled ? chunkCount : Math.min(this.#staged, chunkCount - 1);
  }

  /** The message for the core once the snapshot is on disk and verified. */
  message(to: NodeId): InstallSnapshot {
    const { from, term, timeMillis } = this.#last;
    return { type: 'snapshot', from, to, term, meta: this.meta, timeMillis };
  }
}
