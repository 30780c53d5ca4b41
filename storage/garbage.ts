/**
 * Which keys of one group nobody needs any more, and how they are deleted: a few in each batch that is written
 * anyway. Never deletes what is live; a log's suffix is not garbage, it is ignored and overwritten.
 */
import type { GroupId } from '../raft/types.ts';
import { chunkKey, entryKey } from './keys.ts';

/** Chunks [from, end) of one snapshot. */
interface ChunkSpan {
  from: number;
  end: number;
}

export class GroupGarbage {
  /** No entry key below this one exists. Invariant: oldestKey <= base index + 1, but for a group that was removed. */
  oldestKey = 1;
  /** No entry key above this one exists. */
  newestKey = 0;
  private readonly chunks = new Map<number, ChunkSpan>();

  /** Entry keys up to `index` now exist. */
  noteWritten(index: number): void {
    if (index > this.newestKey) this.newestKey = index;
  }

  /** Chunks [from, end) of the snapshot at `index` are not live (any more). */
  retireChunks(index: number, from: number, end: number): void {
    if (from >= end) return;
    const span = this.chunks.get(index);
    if (span === undefined) {
      this.chunks.set(index, { from, end });
    } else {
      span.from = Math.min(span.from, from);
      span.end = Math.max(span.end, end);
    }
  }

  /**
   * A chunk is about to be written under a key that may be garbage of an earlier attempt: it must not be deleted
   * later. Chunks are written from 0 up, so those below it were claimed before.
   */
  claimChunk(index: number, chunk: number): void {
    const span = this.chunks.get(index);
    if (span === undefined) return;
    span.from = Math.max(span.from, chunk + 1);
    if (span.from >= span.end) this.chunks.delete(index);
  }

  /** A log that was dead as a whole begins again: entry keys may exist from the first on, and those written are live. */
  restart(): void {
    if (this.oldestKey > this.newestKey) this.newestKey = 0;
    this.oldestKey = 1;
  }

  /** Whether anything waits to be deleted, given that entries up to `deadIndex` are not live. */
  waits(deadIndex: number): boolean {
    return this.chunks.size > 0 || this.oldestKey <= Math.min(deadIndex, this.newestKey);
  }

  /** Passes up to `limit` keys to `remove`, forgets them, and returns how many there were. */
  take(group: GroupId, deadIndex: number, limit: number, remove: (key: Buffer) => void): number {
    let taken = 0;
    for (const [index, span] of this.chunks) {
      for (; span.from < span.end && taken < limit; span.from += 1, taken += 1) {
        remove(chunkKey(group, index, span.from));
      }
      if (span.from >= span.end) this.chunks.delete(index);
    }
    // After an installed snapshot the base may be far above the newest key: the gap holds no keys to delete.
    const end = Math.min(deadIndex, this.newestKey);
    for (; this.oldestKey <= end && taken < limit; this.oldestKey += 1, taken += 1) {
      remove(entryKey(group, this.oldestKey));
    }
    if (this.newestKey <= deadIndex && this.oldestKey > end) this.oldestKey = deadIndex + 1;
    return taken;
  }
}
