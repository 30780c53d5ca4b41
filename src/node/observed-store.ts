/** A store that reports how long its writes take and which snapshots were kept. It changes nothing. */
import type { MonotonicClock } from '../api/clocks.ts';
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId, SnapshotMeta } from '../../raft/types.ts';

/** Receives the observations. */
export interface StoreWatcher extends MonotonicClock {
  readonly wrote: (seconds: number) => void;
  /** A snapshot is on disk: of the group's own state, or one received from its leader. */
  readonly snapshotKept: (snapshot: {
    readonly group: GroupId;
    readonly index: number;
    readonly from: 'self' | 'leader';
    readonly bytes: number;
    /** Since its first chunk was written; 0 if that was not observed. */
    readonly seconds: number;
  }) => void;
}

/** Wraps a store and observes it. */
export class ObservedStore implements LogStore {
  /** Number of loaded groups that had a snapshot. */
  snapshotsLoaded = 0;
  /** Snapshots being written, by group: when their first chunk was written. */
  readonly #stagedMillis = new Map<GroupId, number>();
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
    const { monotonicMillis, wrote } = this.#watcher;
    const startedMillis = monotonicMillis();
    for (const { group, stage, remove } of writes) {
      if (stage?.first === 0) this.#stagedMillis.set(group, startedMillis);
      if (remove === true) this.#stagedMillis.delete(group);
    }
    this.#store.write(writes, (error) => {
      wrote((monotonicMillis() - startedMillis) / 1_000);
      if (error === undefined) {
        for (const { group, snapshot, install } of writes) {
          if (snapshot !== undefined) this.#kept(group, snapshot, 'self');
          if (install !== undefined) this.#kept(group, install, 'leader');
        }
      }
      done(error);
    });
  }

  #kept(group: GroupId, { index, byteLength: bytes }: SnapshotMeta, from: 'self' | 'leader'): void {
    const { monotonicMillis, snapshotKept } = this.#watcher;
    const now = monotonicMillis();
    const seconds = (now - (this.#stagedMillis.get(group) ?? now)) / 1_000;
    this.#stagedMillis.delete(group);
    snapshotKept({ group, index, from, bytes, seconds });
  }

  readSnapshotChunk(group: GroupId, index: number, chunk: number): ReturnType<LogStore['readSnapshotChunk']> {
    return this.#store.readSnapshotChunk(group, index, chunk);
  }

  async close(): Promise<void> {
    return this.#store.close();
  }
}
