/**
 * Tracks the keys of one group that are no longer needed, and deletes a few of them with each batch. Entries above the
 * end of the log are not garbage: they are ignored and overwritten.
 */
import type { GroupId } from '../raft/types.ts';
import { chunkKey, entryKey } from './keys.ts';

/** The chunks [from, end) of one snapshot. */
interface ChunkSpan {
  from: number;
  end: number;
}

/** The garbage of one group. */
export class GroupGarbage {
  /** No entry key below this index exists. Invariant: oldestKey <= base index + 1, except in a removed group. */
  oldestKey = 1;
  /** No entry key above this index exists. */
  newestKey = 0;
  private readonly chunks = new Map<number, ChunkSpan>();

  /** Entry keys up to `index` exist now. */
  noteWritten(index: number): void {
    if (index > this.newestKey) this.newestKey = index;
  }

  /** The chunks [from, end) of the snapshot at `index` are garbage from now on. */
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
   * A chunk will be written under a key that may be garbage of an earlier attempt, so it must not be deleted later.
   * Chunks are written from 0 up, so lower ones were claimed before.
   */
  claimChunk(index: number, chunk: number): void {
    const span = this.chunks.get(index);
    if (span === undefined) return;
    span.from = Math.max(span.from, chunk + 1);
    if (span.from >= span.end) this.chunks.delete(index);
  }

  /** The log of a removed group starts again: entry keys may exist from index 1 on, and new ones are live. */
  restart(): void {
    if (this.oldestKey > this.newestKey) this.newestKey = 0;
    this.oldestKey = 1;
  }

  /** Whether there are keys to delete, if entries up to `deadIndex` are garbage. */
  waits(deadIndex: number): boolean {
    return this.chunks.size > 0 || this.oldestKey <= Math.min(deadIndex, this.newestKey);
  }

  /** Passes up to `limit` garbage keys to `remove`, forgets them, and returns their number. */
  take(group: GroupId, deadIndex: number, limit: number, remove: (key: Buffer) => void): number {
    let taken = 0;
    for (const [index, span] of this.chunks) {
      for (; span.from < span.end && taken < limit; span.from += 1, taken += 1) {
        remove(chunkKey(group, index, span.from));
      }
      if (span.from >= span.end) this.chunks.delete(index);
    }
    // After an installed snapshot the base may be far above the newest key; there is nothing to delete in the gap.
    const end = Math.min(deadIndex, this.newestKey);
    for (; this.oldestKey <= end && taken < limit; this.oldestKey += 1, taken += 1) {
      remove(entryKey(group, this.oldestKey));
    }
    if (this.newestKey <= deadIndex && this.oldestKey > end) this.oldestKey = deadIndex + 1;
    return taken;
  }
}
