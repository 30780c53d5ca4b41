/**
 * The snapshots one group has of its own state: when the next is due, and the one that is on its way to the disk, pulled
 * from the state machine chunk by chunk. It writes nothing itself; what goes into the next batch is taken from here.
 */
import { assert } from '../assert.ts';
import { crc32 } from './checksum.ts';
import { entryBytes } from '../log.ts';
import type { SnapshotSource } from './group-application.ts';
import type { StagedChunks } from './store.ts';
import type { Entry, LogPosition, SnapshotMeta } from '../types.ts';

/** Whoever waits for a snapshot that holds everything up to an index: more of one group are refused. */
const WANTED_MAX = 16;

/** A chunk is written, sent and restored as a whole: no larger one is made, and none is taken. */
export const CHUNK_BYTES_MAX = 256 << 10;

type SnapshotPosition = Omit<SnapshotMeta, 'chunkCount' | 'byteLength' | 'checksum'>;

/** Told once: the one on disk, or undefined if this node will have none. Not from within a turn's write. */
type WantedDone = (meta: SnapshotMeta | undefined) => void;

interface Staging {
  readonly position: SnapshotPosition;
  readonly source: SnapshotSource;
  /** What was taken from the source. */
  chunkCount: number;
  byteLength: number;
  checksum: number;
  hasEnded: boolean;
}

export class LocalSnapshots {
  /** The one on disk. */
  #stored: SnapshotMeta | undefined;
  #appliedBytes = 0;
  /** The last entry or snapshot that was. */
  #applied: LogPosition | undefined;
  #staging: Staging | undefined;
  #wanted: { readonly index: number; readonly done: WantedDone }[] = [];
  /** How many read the stored one, for as long as nobody replaces it. */
  readers = 0;

  constructor(stored: SnapshotMeta | undefined) {
    this.#stored = stored;
    this.#applied = stored;
  }

  get stored(): SnapshotMeta | undefined {
    return this.#stored;
  }

  applied(entry: Entry): void {
    this.#applied = entry;
    this.#appliedBytes += entryBytes(entry);
  }

  /** Asks for a snapshot that holds everything up to `index`, which is applied: the stored one, or one that is taken for it. */
  want(index: number, done: WantedDone): void {
    const { stored } = this;
    if (stored !== undefined && stored.index >= index) done(stored);
    else if (this.#wanted.length >= WANTED_MAX) done(undefined);
    else this.#wanted.push({ index, done });
  }

  /** Where the one that somebody wants is to be taken; undefined if nobody does, or one is on its way. */
  get wantedAt(): LogPosition | undefined {
    return this.#wanted.length > 0 && this.#staging === undefined ? this.#applied : undefined;
  }

  /** The group leaves this node. */
  close(): void {
    this.abandon();
    for (const { done } of this.#wanted.splice(0)) done(undefined);
  }

  #tellWanted(stored: SnapshotMeta): void {
    const told = this.#wanted.filter(({ index }) => index <= stored.index);
    this.#wanted = this.#wanted.filter(({ index }) => index > stored.index);
    for (const { done } of told) done(stored);
  }

  /** Has `patience` times as much been applied as makes a snapshot worth it? Never while one is on its way. */
  isDue(everyBytes: number, patience: number): boolean {
    const due = Math.max(everyBytes, this.#stored?.byteLength ?? 0);
    return this.#staging === undefined && this.#appliedBytes >= due * patience;
  }

  /** The state machine writes a snapshot of what it is now. */
  begin(position: SnapshotPosition, source: SnapshotSource): void {
    assert(this.#staging === undefined, 'one snapshot of the own state at a time');
    this.#staging = { position, source, chunkCount: 0, byteLength: 0, checksum: 0, hasEnded: false };
    this.#appliedBytes = 0;
  }

  /** It will not be needed: a snapshot of the leader is coming, or the group is removed. */
  abandon(): void {
    this.#staging?.source.abandon();
    this.#staging = undefined;
  }

  /** There are chunks to write, or there may be. */
  get hasMore(): boolean {
    return this.#staging?.hasEnded === false;
  }

  /** Pulls the next chunks to write until they have `bytesMax`; undefined if there are none. */
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

  /** All chunks were taken: with them on disk, this makes them the group's snapshot. */
  get complete(): SnapshotMeta | undefined {
    if (this.#staging?.hasEnded !== true) return undefined;
    const { position, chunkCount, byteLength, checksum } = this.#staging;
    assert(chunkCount > 0, 'a snapshot has a chunk, or it could not be sent');
    return { ...position, chunkCount, byteLength, checksum };
  }

  /** `complete` is on disk. */
  completed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#staging = undefined;
    this.#tellWanted(meta);
  }

  /** A snapshot of the leader is on disk. */
  installed(meta: SnapshotMeta): void {
    this.#stored = meta;
    this.#applied = meta;
    this.#appliedBytes = 0;
    this.#tellWanted(meta);
  }
}
