/** A store in memory that records its batches, and whose reads a test can delay. */
import type { GroupWrite, LogStore } from '../../../raft/driver/store.ts';
import type { GroupId, StoredGroup } from '../../../raft/types.ts';
import { MemoryStore, type MemoryStoreOptions } from '../../../storage/memory-store.ts';

export class WatchedStore implements LogStore {
  readonly memory: MemoryStore;
  /** Every batch that it was given. */
  readonly writes: (readonly GroupWrite[])[] = [];
  #held: (() => void)[] | undefined;

  constructor(options: MemoryStoreOptions) {
    this.memory = new MemoryStore(options);
  }

  get hasGarbage(): boolean {
    return this.memory.hasGarbage;
  }

  load(group: GroupId): Promise<StoredGroup | undefined> {
    return this.memory.load(group);
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    this.writes.push(writes);
    this.memory.write(writes, done);
  }

  async readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined> {
    const held = this.#held;
    if (held !== undefined) await new Promise<void>((resolve) => held.push(resolve));
    return this.memory.readSnapshotChunk(group, index, chunk);
  }

  /** From now on, reads of chunks wait. */
  holdReads(): void {
    this.#held = [];
  }

  /** The reads that wait are done, and those to come are quick again. */
  releaseReads(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const release of held) release();
  }

  close(): Promise<void> {
    return this.memory.close();
  }
}
