/** The store on LevelDB: batches, garbage collection, failures of LevelDB. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KeyValueDatabase, Operation } from '../../storage/database.ts';
import { entryRange, chunkRange } from '../../storage/keys.ts';
import { DELETES_PER_WRITE_MAX, type LevelStore } from '../../storage/level-store.ts';
import { openStore } from '../../storage/open-store.ts';
import {
  IDENTITY,
  append,
  chunk,
  createStore,
  entries,
  entry,
  installing,
  meta,
  scratch,
  snapshot,
  staging,
  storedSnapshot,
  written,
} from './fixtures.ts';

let directory: string;
let remove: () => Promise<void>;
let store: LevelStore;
let database: KeyValueDatabase;
let batches: Operation[][];
let intercept: KeyValueDatabase['syncedBatch'];

const options = {
  wrapDatabase: (inner: KeyValueDatabase): KeyValueDatabase => {
    database = inner;
    intercept = (operations, done) => inner.syncedBatch(operations, done);
    return {
      syncedBatch: (operations, done) => {
        batches.push(operations);
        intercept(operations, done);
      },
      get: (key) => inner.get(key),
      scan: (range, visit) => inner.scan(range, visit),
      compact: (range) => inner.compact(range),
      close: () => inner.close(),
    };
  },
};

beforeEach(async () => {
  ({ directory, remove } = await scratch());
  batches = [];
  store = await createStore(directory, options);
});
afterEach(async () => {
  await store.close();
  await remove();
});

async function reopen(): Promise<void> {
  await store.close();
  batches = [];
  store = await openStore(directory, IDENTITY, options);
}

async function bytesOf(path: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(path)) {
    // LevelDB may delete files at any moment.
    bytes += await stat(join(path, name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return bytes;
}

async function countEntries(group: number): Promise<number> {
  let count = 0;
  await database.scan(entryRange(group, 0, 2 ** 40), () => (count += 1));
  return count;
}

async function countChunks(group: number): Promise<number> {
  let count = 0;
  await database.scan(chunkRange(group), () => (count += 1));
  return count;
}

function deletes(operations: readonly Operation[]): number {
  return operations.filter((operation) => operation.type === 'del').length;
}

describe('a write', () => {
  it('is one batch, with one record for each group and one for the store', async () => {
    batches = [];
    await written(store, [append(1, entries(1, 3)), append(2, entries(1, 2))]);
    expect(batches.map((batch) => batch.length)).toEqual([5 + 2 + 1]);
  });

  it('without groups still writes, to show that the disk works', async () => {
    batches = [];
    await written(store, []);
    expect(batches.map((batch) => batch.length)).toEqual([1]);
  });

  it('numbers the batches without gaps, across restarts', async () => {
    const before = store.lastBatch;
    await written(store, [append(1, [entry(1)])]);
    await reopen();
    // One for the write above, one for the write that openStore does.
    expect(store.lastBatch).toBe(before + 2);
  });
});

describe('garbage', () => {
  const LONG = 1500;

  async function fillAndCompact(): Promise<void> {
    await written(store, [append(1, entries(1, LONG), LONG)]);
    const data = chunk(1);
    await written(store, [
      {
        group: 1,
        entries: [],
        stage: staging(LONG - 10, 0, data),
        snapshot: meta(LONG - 10, [data]),
        compactTo: { index: LONG - 10, term: 1, timeMillis: (LONG - 10) * 10 },
      },
    ]);
  }

  it('is deleted along with later writes of any group, a bounded number of keys in each', async () => {
    batches = [];
    await fillAndCompact();
    for (let index = 1; index <= 4; index += 1) await written(store, [append(2, [entry(index)])]);
    expect(Math.max(...batches.map(deletes))).toBe(DELETES_PER_WRITE_MAX);
    expect(batches.map(deletes).reduce((a, b) => a + b)).toBe(LONG - 10);
    expect(await countEntries(1)).toBe(10);
  });

  it('is found again after a restart', async () => {
    await fillAndCompact();
    await reopen();
    for (let index = 1; index <= 3; index += 1) await written(store, [append(2, [entry(index)])]);
    expect(await countEntries(1)).toBe(10);
    await reopen();
    await written(store, [append(2, [entry(4)])]);
    expect(batches.map(deletes)).toEqual([0, 0]);
    expect((await store.load(1))?.entries).toEqual(entries(LONG - 9, LONG));
  });

  it('of a log is deleted entry by entry, also if the snapshot that replaced the log is far ahead of it', async () => {
    await written(store, [append(1, entries(1, 20), 20)]);
    batches = [];
    await written(store, [{ group: 1, entries: [], ...installing(snapshot(1_000_000_000_000, [chunk(1)])) }]);
    await written(store, []);
    expect(batches.map(deletes)).toEqual([20, 0]);
    expect(await countEntries(1)).toBe(0);
    await written(store, [append(1, [entry(1_000_000_000_001)], 20)]);
    await reopen();
    expect((await store.load(1))?.entries).toEqual([entry(1_000_000_000_001)]);
  });

  it('includes entries above the end of the log only when the base has passed them', async () => {
    await written(store, [append(1, entries(1, 20), 5)]);
    await written(store, [append(1, [entry(6, 2)], 5)]);
    await reopen();
    expect(await countEntries(1)).toBe(20);
    await written(store, [{ group: 1, entries: [], ...installing(snapshot(30, [], 2)) }]);
    expect(await countEntries(1)).toBe(0);
  });

  it('of a group that was removed is deleted to the last key, a bounded number in each write', async () => {
    await fillAndCompact();
    const removal = {
      group: 1,
      placement: 1,
      remove: true as const,
      hardState: { term: 2, vote: 0, commit: 0 },
      entries: [],
    };
    await written(store, [removal]);
    expect(store.hasGarbage).toBe(true);
    batches = [];
    await reopen();
    while (store.hasGarbage) await written(store, []);
    expect(Math.max(...batches.map(deletes))).toBeLessThanOrEqual(DELETES_PER_WRITE_MAX);
    expect([await countEntries(1), await countChunks(1)]).toEqual([0, 0]);
    await reopen();
    expect(store.hasGarbage).toBe(false);
    expect(await store.load(1)).toMatchObject({ removed: true, hardState: { term: 2 } });
  });

  it('of a removed group leaves the disk soon, even if nothing more is written', async () => {
    await store.close();
    store = await openStore(directory, IDENTITY, { ...options, writeBufferBytes: 256 << 10 });
    const data = chunk(1, 64 << 10);
    for (let number = 0; number < 128; number += 1) {
      await written(store, [{ group: 1, entries: [], stage: staging(5, number, data) }]);
    }
    await written(store, [append(2, [entry(1)])]);
    const before = await bytesOf(directory);
    // LevelDB may have a part of it in memory only.
    expect(before).toBeGreaterThan(4 << 20);
    await written(store, [
      { group: 1, placement: 1, remove: true, hardState: { term: 1, vote: 0, commit: 0 }, entries: [] },
    ]);
    while (store.hasGarbage) await written(store, []);
    await expect.poll(() => bytesOf(directory), { timeout: 120_000 }).toBeLessThan(before / 8);
    await reopen();
    expect((await store.load(2))?.entries).toEqual([entry(1)]);
  });

  it.each([0, 1, 2, 9])(
    "of a removed group is deleted without the group's new log, which begins after %i more writes",
    async (writes) => {
      await written(store, [append(1, entries(1, LONG), LONG)]);
      await written(store, [
        { group: 1, placement: 1, remove: true, hardState: { term: 2, vote: 0, commit: 0 }, entries: [] },
      ]);
      for (let i = 0; i < writes; i += 1) await written(store, []);
      await written(store, [{ ...append(1, entries(1, 40, 3), 30), placement: 2 }]);
      for (let i = 0; i < 9; i += 1) await written(store, []);
      await reopen();
      expect((await store.load(1))?.entries).toEqual(entries(1, 40, 3));
      const data = chunk(1);
      await written(store, [
        {
          group: 1,
          entries: [],
          stage: staging(30, 0, data),
          snapshot: meta(30, [data], 3),
          compactTo: { index: 30, term: 3, timeMillis: 300 },
        },
      ]);
      while (store.hasGarbage) await written(store, []);
      await reopen();
      expect((await store.load(1))?.entries).toEqual(entries(31, 40, 3));
    },
  );

  it('of replaced snapshots and of attempts that a restart ended is deleted', async () => {
    await written(store, [append(1, entries(1, 20), 20)]);
    const stage = (index: number, number: number): Promise<void> =>
      written(store, [{ group: 1, entries: [], stage: staging(index, number, chunk(index)) }]);
    await stage(10, 0);
    await stage(10, 1);
    await written(store, [{ group: 1, entries: [], snapshot: meta(10, [chunk(10), chunk(10)]) }]);
    await stage(12, 0);
    await stage(12, 1);
    await stage(12, 2);
    await reopen();
    // The same attempt again, and shorter, while the leftovers of the first are being deleted.
    await stage(12, 0);
    await written(store, [{ group: 1, entries: [], snapshot: meta(12, [chunk(12)]) }]);
    await written(store, []);
    expect(await countChunks(1)).toBe(1);
    await reopen();
    expect(await storedSnapshot(store, 1)).toEqual(snapshot(12, [chunk(12)]));
  });
});

describe('a failing disk', () => {
  it('gets no further write', async () => {
    intercept = (_operations, done) =>
      queueMicrotask(() => done(new Error('IO error: No space left on device')));
    batches = [];
    await expect(written(store, [append(1, [entry(1)])])).rejects.toThrow(
      /No space left on device.*start the process again/,
    );
    await expect(written(store, [append(1, [entry(1)])])).rejects.toThrow(/No space left on device/);
    await expect(written(store, [])).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(batches.length).toBe(1);
  });

  it('may have kept the write it reported as failed: the next start accepts both', async () => {
    await written(store, [append(1, entries(1, 2))]);
    intercept = (operations, done) =>
      database.syncedBatch(operations, () => done(new Error('IO error: injected after the fact')));
    await expect(written(store, [append(1, [entry(3)])])).rejects.toMatchObject({ code: 'STORE_FAILED' });
    await reopen();
    expect((await store.load(1))?.entries).toEqual(entries(1, 3));
  });
});
