/**
 * The snapshots one group has on its own disk: when the next is due, and the chunks of the one that is on its way
 * there. It writes nothing itself; what goes into the next batch is taken from here.
 */
import { crc32 } from './checksum.ts';
import { entryBytes } from './log.ts';
import type { GroupApplication, SnapshotSource } from './group-application.ts';
import type { GroupWrite } from './store.ts';
import type { Entry, Snapshot, SnapshotMeta } from './types.ts';

interface Staging {
  readonly meta: SnapshotMeta;
  readonly chunks: readonly Uint8Array[];
  nextChunk: number;
  /** Of the chunks before `nextChunk`. */
  checksum: number;
}

export class LocalSnapshots {
  /** The one on disk. */
  #stored: SnapshotMeta | undefined;
  #appliedBytes = 0;
  #staging: Staging | undefined;

  constructor(stored: SnapshotMeta | undefined) {
    this.#stored = stored;
  }

  get stored(): SnapshotMeta | undefined {
    return this.#stored;
  }

  applied(entry: Entry): void {
    this.#appliedBytes += entryBytes(entry);
  }

  /** Has `patience` times as much been applied as makes a snapshot worth it? Never while one is on its way. */
  isDue(everyBytes: number, patience: number): boolean {
    const due = Math.max(everyBytes, this.#stored?.byteLength ?? 0);
    return this.#staging === undefined && this.#appliedBytes >= due * patience;
  }

  /** A snapshot was taken of the state machine: its chunks go to the disk one after the other. */
  stage(position: Omit<SnapshotMeta, 'chunkCount' | 'byteLength'>, chunks: readonly Uint8Array[]): void {
    let byteLength = 0;
    for (const chunk of chunks) byteLength += chunk.byteLength;
    const meta = { ...position, chunkCount: chunks.length, byteLength };
    this.#staging = { meta, chunks, nextChunk: 0, checksum: 0 };
    this.#appliedBytes = 0;
  }

  /** A snapshot of the leader takes the place of the one that was on its way. */
  abandon(): void {
    this.#staging = undefined;
  }

  /** The next chunk to write, if one is left. */
  get nextChunk(): GroupWrite['snapshotChunk'] {
    const staging = this.#staging;
    const data = staging?.chunks[staging.nextChunk];
    if (staging === undefined || data === undefined) return undefined;
    return { index: staging.meta.index, chunk: staging.nextChunk, data };
  }

  /** `nextChunk` is in the batch that is being made. */
  chunkTaken(data: Uint8Array): void {
    const staging = this.#staging;
    if (staging === undefined) return;
    staging.nextChunk += 1;
    staging.checksum = crc32(data, staging.checksum);
  }

  /** All chunks were written: this makes them the group's snapshot. */
  get complete(): SnapshotMeta | undefined {
    const staging = this.#staging;
    if (staging === undefined || staging.nextChunk < staging.chunks.length) return undefined;
    return { ...staging.meta, checksum: staging.checksum };
  }

  /** `complete` is on disk. */
  completed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#staging = undefined;
  }

  /** A snapshot of the leader is on disk. */
  installed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#appliedBytes = 0;
  }
}

/** All chunks of a state at once. */
export function chunksOf(source: SnapshotSource): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let chunk = source.next(); chunk !== undefined; chunk = source.next()) chunks.push(chunk);
  return chunks;
}

/** Replaces the state of `app` at once. */
export function restoreFrom(app: GroupApplication, { meta, chunks }: Snapshot): void {
  const target = app.restore(meta);
  for (const chunk of chunks) target.add(chunk);
  target.complete();
  target.install();
}
