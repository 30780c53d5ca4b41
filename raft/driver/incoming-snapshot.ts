/**
 * One snapshot on its way from a leader to a group of this node: which of its chunks are on disk, and which one is to be
 * written. It neither writes nor answers; see incoming-snapshots.ts.
 */
import { crc32 } from './checksum.ts';
import type { SnapshotChunk } from './peer-message.ts';
import type { StagedChunks } from './store.ts';
import type { InstallSnapshot, NodeId, SnapshotMeta } from '../types.ts';

/** Of the last message that came; its data would be a second chunk in memory. */
interface Heard {
  readonly from: NodeId;
  readonly term: number;
  readonly timeMillis: number;
}

export class IncomingSnapshot {
  readonly meta: SnapshotMeta;
  #last: Heard;
  /** Chunks on disk. */
  #staged = 0;
  #stagedBytes = 0;
  #checksum = 0;
  /** Came, and is to be written or being written. */
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

  heard({ from, term, timeMillis }: SnapshotChunk): void {
    this.silentTicks = 0;
    if (term >= this.term) this.#last = { from, term, timeMillis };
  }

  /** More bytes than the whole snapshot has. */
  exceeds({ chunk, data }: SnapshotChunk): boolean {
    return chunk === this.#staged && this.#stagedBytes + data.byteLength > this.meta.byteLength;
  }

  /** Whether it is the next chunk, which waits from now on. */
  takes({ chunk, data }: SnapshotChunk): boolean {
    if (chunk !== this.#staged || this.#waiting !== undefined || this.isStaged) return false;
    this.#waiting = data;
    return true;
  }

  /** What the next write stages. */
  get toStage(): StagedChunks | undefined {
    if (this.#waiting === undefined) return undefined;
    return { index: this.meta.index, first: this.#staged, chunks: [this.#waiting] };
  }

  /** The chunk that waited is on disk. Returns false if these cannot be the chunks of the snapshot. */
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

  /** What the core is told when the snapshot is on disk and sound. */
  message(to: NodeId): InstallSnapshot {
    const { from, term, timeMillis } = this.#last;
    return { type: 'snapshot', from, to, term, meta: this.meta, timeMillis };
  }
}
