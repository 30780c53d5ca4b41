/** The conformance tests, run for each store. */
import { setImmediate } from 'node:timers/promises';
import { describe } from 'vitest';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import type { KeyValueDatabase } from '../../storage/database.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { MemoryStore } from '../../storage/memory-store.ts';
import { openStore } from '../../storage/open-store.ts';
import { testLogStore } from './conformance.ts';
import { IDENTITY, scratch } from './fixtures.ts';

describe('108: LevelStore', () => {
  testLogStore<LevelStore>(async () => {
    const { directory, remove } = await scratch();
    await bootstrapStore(directory, IDENTITY);
    let failing = false;
    const wrapDatabase = (database: KeyValueDatabase): KeyValueDatabase => ({
      syncedBatch: (operations, done) => {
        if (failing) queueMicrotask(() => done(new Error('IO error: injected')));
        else database.syncedBatch(operations, done);
      },
      get: (key) => database.get(key),
      scan: (range, visit) => database.scan(range, visit),
      compact: (range) => database.compact(range),
      close: () => database.close(),
    });
    return {
      open: () => openStore(directory, IDENTITY, { wrapDatabase }),
      restart: async (store) => {
        await store.close();
        failing = false;
        return openStore(directory, IDENTITY, { wrapDatabase });
      },
      failNextWrite: () => {
        failing = true;
      },
      dispose: remove,
    };
  });
});

function soon(fn: () => void): void {
  void setImmediate().then(fn);
}

describe('108: MemoryStore', () => {
  testLogStore<MemoryStore>(async () => ({
    open: async () => new MemoryStore({ schedule: soon }),
    restart: async (store) => {
      await store.close();
      return new MemoryStore({ schedule: soon, disk: store.disk() });
    },
    failNextWrite: (store) => store.failNextWrite(new Error('IO error: injected')),
    dispose: async () => {},
  }));
});
