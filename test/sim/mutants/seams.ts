/** Layers between a node and its disk, for mutants that are not edits of the product. */
import type { LogStore } from '../../../raft/driver/store.ts';
import type { StoredGroup } from '../../../raft/types.ts';
import type { Seams } from '../node-world.ts';

/** A store that reports each write as done at once, but does it `lateMillis` later. */
export function lyingStore(lateMillis: number): Seams {
  return {
    wrapStore(store, after): LogStore {
      const queue: Parameters<LogStore['write']>[0][] = [];
      let isWriting = false;
      const next = (): void => {
        const writes = isWriting ? undefined : queue.shift();
        if (writes === undefined) return;
        isWriting = true;
        store.write(writes, () => {
          isWriting = false;
          after(lateMillis, next);
        });
      };
      return {
        load: (group) => store.load(group),
        write(writes, done) {
          queue.push(writes);
          next();
          after(0, () => done());
        },
        get hasGarbage() {
          return store.hasGarbage;
        },
        readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
        close: () => store.close(),
      };
    },
  };
}

/** A store that reports writes that install a snapshot as done before they are. */
export function earlyInstalls(): Seams {
  return {
    wrapStore(store, after): LogStore {
      let isWriting = false;
      let waiting: (() => void) | undefined;
      return {
        load: (group) => store.load(group),
        write(writes, done) {
          const isEarly = writes.some(({ install }) => install !== undefined);
          const write = (): void => {
            isWriting = true;
            store.write(writes, (error) => {
              isWriting = false;
              if (!isEarly) done(error);
              const next = waiting;
              waiting = undefined;
              next?.();
            });
            if (isEarly) after(0, () => done());
          };
          if (isWriting) waiting = write;
          else write();
        },
        get hasGarbage() {
          return store.hasGarbage;
        },
        readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
        close: () => store.close(),
      };
    },
  };
}

/** A store that changes what a new process reads from it. */
export function changedLoads(change: (stored: StoredGroup) => StoredGroup): Seams {
  return {
    wrapStore: (store): LogStore => ({
      load: async (group) => {
        const stored = await store.load(group);
        return stored === undefined ? undefined : change(stored);
      },
      write: (writes, done) => store.write(writes, done),
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
      close: () => store.close(),
    }),
  };
}

/** A store that changes what is written to it. */
export function changedWrites(
  change: (write: Parameters<LogStore['write']>[0][number]) => typeof write,
): Seams {
  return {
    wrapStore: (store): LogStore => ({
      load: (group) => store.load(group),
      write: (writes, done) => store.write(writes.map(change), done),
      get hasGarbage() {
        return store.hasGarbage;
      },
      readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
      close: () => store.close(),
    }),
  };
}
