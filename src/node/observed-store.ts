/** A store that tells what is done with it: how long its writes take, and what becomes of snapshots. Changes nothing. */
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId } from '../../raft/types.ts';

export interface StoreWatcher {
  readonly monotonicMillis: () => number;
  readonly wrote: (seconds: number) => void;
  /** On disk now: a snapshot of the group's own state, or one of its leader's. */
  readonly snapshotKept: (snapshot: {
    readonly group: GroupId;
    readonly index: number;
    readonly from: 'self' | 'leader';
  }) => void;
}

export class ObservedStore implements LogStore {
  /** Groups that were loaded and had one. */
  snapshotsLoaded = 0;
  readonly #store: LogStore;
  readonly #watcher: StoreWatcher;

  constructor(store: LogStore, watcher: StoreWatcher) {
    this.#store = store;
    this.#watcher = watcher;
  }

  get hasGarbage(): boolean {
    return this.#store.hasGarbage;
  }

  async load(group: GroupId): ReturnType<LogStore['load']> {
    const stored = await this.#store.load(group);
    if (stored?.snapshot !== undefined) this.snapshotsLoaded += 1;
    return stored;
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    const { monotonicMillis, wrote, snapshotKept } = this.#watcher;
    const startedMillis = monotonicMillis();
    this.#store.write(writes, (error) => {
      wrote((monotonicMillis() - startedMillis) / 1_000);
      if (error === undefined) {
        for (const { group, snapshot, install } of writes) {
          if (snapshot !== undefined) snapshotKept({ group, index: snapshot.index, from: 'self' });
          if (install !== undefined) snapshotKept({ group, index: install.index, from: 'leader' });
        }
      }
      done(error);
    });
  }

  readSnapshotChunk(group: GroupId, index: number, chunk: number): ReturnType<LogStore['readSnapshotChunk']> {
    return this.#store.readSnapshotChunk(group, index, chunk);
  }

  async close(): Promise<void> {
    return this.#store.close();
  }
}
