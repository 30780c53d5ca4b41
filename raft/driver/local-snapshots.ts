/**
 * The snapshots that a group takes of its own state: when the next one is due, and the one that is being written, chunk
 * by chunk. This file writes nothing; the next batch takes chunks from it.
 */
import { assert } from '../assert.ts';
import { crc32 } from './checksum.ts';
import { entryBytes } from '../log.ts';
import type { SnapshotSource } from './group-application.ts';
import type { StagedChunks } from './store.ts';
import type { Entry, LogPosition, SnapshotMeta } from '../types.ts';

/** At most this many callers per group wait for a snapshot; more are refused. */
const WANTED_MAX = 16;

/**
 * The largest chunk in bytes. A chunk is written, sent and restored as a whole; larger ones are neither made nor
 * accepted.
 */
export const CHUNK_BYTES_MAX = 256 << 10;

type SnapshotPosition = Omit<SnapshotMeta, 'chunkCount' | 'byteLength' | 'checksum'>;

/**
 * Receives the snapshot on disk, or undefined if this node will have none. Called once, and not while a turn writes.
 */
type WantedDone = (meta: SnapshotMeta | undefined) => void;

interface Staging {
  readonly position: SnapshotPosition;
  readonly source: SnapshotSource;
  /** Totals of the chunks taken from the source so far. */
  chunkCount: number;
  byteLength: number;
  checksum: number;
  hasEnded: boolean;
}

/** The snapshots of one group. */
export class LocalSnapshots {
  /** The snapshot on disk. */
  #stored: SnapshotMeta | undefined;
  #appliedBytes = 0;
  /** The last applied entry or installed snapshot. */
  #applied: LogPosition | undefined;
  #staging: Staging | undefined;
  #wanted: { readonly index: number; readonly done: WantedDone }[] = [];
  /** The number of readers of the stored snapshot. A new snapshot is delayed for them. */
  readers = 0;

  constructor(stored: SnapshotMeta | undefined) {
    this.#stored = stored;
    this.#applied = stored;
  }

  get stored(): SnapshotMeta | undefined {
    return this.#stored;
  }

  /** Counts an applied entry. */
  applied(entry: Entry): void {
    this.#applied = entry;
    this.#appliedBytes += entryBytes(entry);
  }

  /** Requests a snapshot with everything up to `index`, which is applied: the stored one, or a new one. */
  want(index: number, done: WantedDone): void {
    const { stored } = this;
    if (stored !== undefined && stored.index >= index) done(stored);
    else if (this.#wanted.length >= WANTED_MAX) done(undefined);
    else this.#wanted.push({ index, done });
  }

  /** The position for a requested snapshot; undefined if none is requested or one is being written. */
  get wantedAt(): LogPosition | undefined {
    return this.#wanted.length > 0 && this.#staging === undefined ? this.#applied : undefined;
  }

  /** The group leaves this node: drops everything and answers the waiting callers. */
  close(): void {
    this.abandon();
    for (const { done } of this.#wanted.splice(0)) done(undefined);
  }

  #reportWanted(stored: SnapshotMeta): void {
    const satisfied = this.#wanted.filter(({ index }) => index <= stored.index);
    this.#wanted = this.#wanted.filter(({ index }) => index > stored.index);
    for (const { done } of satisfied) done(stored);
  }

  /**
   * Whether a snapshot is due: `patience` times as many bytes were applied as `everyBytes`, or as the last snapshot had
   * if that is more. Never while one is being written.
   */
  isDue(everyBytes: number, patience: number): boolean {
    const due = Math.max(everyBytes, this.#stored?.byteLength ?? 0);
    return this.#staging === undefined && this.#appliedBytes >= due * patience;
  }

  /** Begins a snapshot. */
  begin(position: SnapshotPosition, source: SnapshotSource): void {
    assert(this.#staging === undefined, 'a group may write only one snapshot at a time');
    this.#staging = { position, source, chunkCount: 0, byteLength: 0, checksum: 0, hasEnded: false };
    this.#appliedBytes = 0;
  }

  /** Drops the snapshot being written: the leader's is coming, or the group is removed. */
  abandon(): void {
    this.#staging?.source.abandon();
    this.#staging = undefined;
  }

  /** Whether there may be chunks to write. */
  get hasMore(): boolean {
    return this.#staging?.hasEnded === false;
  }

  /** Pulls chunks from the source until they have `bytesMax` bytes; undefined if there are none. */
  take(bytesMax: number): StagedChunks | undefined {
    const staging = this.#staging;
    if (staging === undefined) return undefined;
    const first = staging.chunkCount;
    const chunks: Uint8Array[] = [];
    for (let bytes = 0; bytes < bytesMax && !staging.hasEnded;) {
      const chunk = staging.source.next();
      if (chunk === undefined) {
        staging.hasEnded = true;
        break;
      }
      assert(chunk.byteLength <= CHUNK_BYTES_MAX, 'a chunk of {} bytes is too large', chunk.byteLength);
      chunks.push(chunk);
      bytes += chunk.byteLength;
      staging.chunkCount += 1;
      staging.byteLength += chunk.byteLength;
      staging.checksum = crc32(chunk, staging.checksum);
    }
    return chunks.length === 0 ? undefined : { index: staging.position.index, first, chunks };
  }

  /** Set once all chunks were taken: writing this description makes them the group's snapshot. */
  get complete(): SnapshotMeta | undefined {
    if (this.#staging?.hasEnded !== true) return undefined;
    const { position, chunkCount, byteLength, checksum } = this.#staging;
    assert(chunkCount > 0, 'a snapshot must have a chunk, or it could not be sent');
    return { ...position, chunkCount, byteLength, checksum };
  }

  /** The new snapshot is on disk. */
  completed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#staging = undefined;
    this.#reportWanted(meta);
  }

  /** A snapshot from the leader is on disk. */
  installed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#applied = meta;
    this.#appliedBytes = 0;
    this.#reportWanted(meta);
  }
}
