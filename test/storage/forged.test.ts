/**
 * Databases whose files are intact for LevelDB, but whose records do not belong together: the result of a hole in
 * LevelDB's log once LevelDB has rewritten it. Only the store's own verification can refuse these.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entry } from '../../raft/types.ts';
import { IDENTITY_KEY, MASK_KEY, STORE_KEY, chunkKey, entryKey, groupKey } from '../../storage/keys.ts';
import { openStore } from '../../storage/open-store.ts';
import {
  ENTRIES,
  expectRefusedForEver,
  makeSpecimen,
  rawly,
  type RawLevel,
  type Specimen,
} from './damage-lab.ts';
import { IDENTITY, append, createStore, entries, entry, scratch, written } from './fixtures.ts';

describe('a database is refused', () => {
  const removals: (() => Promise<void>)[] = [];
  let specimen: Specimen;

  beforeAll(async () => {
    specimen = await makeSpecimen();
    removals.push(() => specimen.remove());
  });
  afterAll(async () => {
    await Promise.all(removals.map((remove) => remove()));
  });

  async function emptyDirectory(): Promise<string> {
    const { directory, remove } = await scratch();
    removals.push(remove);
    return `${directory}/store`;
  }

  /** Changes the intact database without the store, and expects the store to notice. */
  async function expectFound(act: (level: RawLevel) => Promise<void>, damage: RegExp): Promise<void> {
    const directory = await specimen.copy(specimen.closed);
    await rawly(directory, act);
    await expectRefusedForEver(directory, damage);
  }

  /** Puts back the values these keys had in the first batches of the same history. */
  async function rollBack(keys: readonly Buffer[]): Promise<(level: RawLevel) => Promise<void>> {
    const directory = await emptyDirectory();
    const store = await createStore(directory);
    await written(store, [append(0, [entry(1)]), append(1, entries(1, 5), 5), append(2, [entry(1)])]);
    await store.close();
    const values: Buffer[] = [];
    await rawly(directory, async (level) => {
      for (const key of keys) values.push((await level.get(key)) ?? Buffer.alloc(0));
    });
    return async (level) => {
      for (const [i, key] of keys.entries()) await level.put(key, values[i] ?? Buffer.alloc(0));
    };
  }

  it('when the record of one group is older, with its vote', async () => {
    const act = await rollBack([groupKey(2)]);
    await expectFound(act, /one of them was lost or is older, and a vote may be forgotten/);
  });

  it('when the records of two groups are older by the same change', async () => {
    const act = await rollBack([groupKey(0), groupKey(2)]);
    await expectFound(act, /one of them was lost or is older/);
  });

  it('when all records of a group are missing', async () => {
    await expectFound(async (level) => {
      await level.del(groupKey(2));
      await level.del(entryKey(2, 1));
    }, /the records of the 2 groups found/);
  });

  it('when the store record is missing or older than a group', async () => {
    await expectFound((level) => level.del(STORE_KEY), /the store record is missing/);
    const directory = await specimen.copy(specimen.killed);
    await rawly(directory, await rollBack([STORE_KEY]));
    await expectRefusedForEver(directory, /contradicts itself or batch 3/);
  });

  it('when the identity is missing', async () => {
    await expectFound((level) => level.del(IDENTITY_KEY), /the identity record is missing/);
  });

  it.each([1, 77, ENTRIES])('when entry %i is missing', async (index) => {
    await expectFound(
      (level) => level.del(entryKey(0, index)),
      new RegExp(`entries ${index} to ${index} of group 0`),
    );
  });

  /** A log whose fifth entry is replaced, and put back without the store. */
  async function withReplacedFifth(replacement: readonly Entry[]): Promise<string> {
    const directory = await emptyDirectory();
    const store = await createStore(directory);
    await written(store, [append(1, entries(1, 5), 4)]);
    await store.close();
    let fifth: Buffer | undefined;
    await rawly(directory, async (level) => {
      fifth = await level.get(entryKey(1, 5));
    });
    const again = await openStore(directory, IDENTITY);
    await written(again, [append(1, replacement, 4)]);
    await again.close();
    await rawly(directory, (level) => level.put(entryKey(1, 5), fifth ?? Buffer.alloc(0)));
    return directory;
  }

  it('when an entry is one that was replaced, with a valid checksum', async () => {
    const directory = await withReplacedFifth([entry(5, 2), entry(6, 2)]);
    await expectRefusedForEver(directory, /entry 6 of group 1 does not belong after the entry before it/);
  });

  it('when an entry is that of another database', async () => {
    const act = await rollBack([entryKey(1, 5)]);
    const directory = await emptyDirectory();
    const store = await createStore(directory);
    await written(store, [append(1, entries(1, 5), 4)]);
    await store.close();
    await rawly(directory, act);
    await expectRefusedForEver(directory, /entry 5 of group 1 does not belong after the entry before it/);
  });

  it('when the mask is missing or another one', async () => {
    await expectFound((level) => level.del(MASK_KEY), /the mask record is missing/);
    await expectFound((level) => level.put(MASK_KEY, Buffer.alloc(68)), /the mask record has checksum/);
  });

  it('when the last entry is one that was replaced', async () => {
    const directory = await withReplacedFifth([entry(5, 2)]);
    await expectRefusedForEver(directory, /the last entry 5 of group 1 is not the one its record names/);
  });

  it('when an intact value is stored under another key', async () => {
    await expectFound(async (level) => {
      await level.put(entryKey(0, 51), (await level.get(entryKey(0, 50))) ?? Buffer.alloc(0));
    }, /entry 51 of group 0 has checksum/);
  });

  it('when a value is too short for any record', async () => {
    await expectFound(
      (level) => level.put(entryKey(0, 51), Buffer.of(1, 2)),
      /entry 51 of group 0 is 2 bytes long/,
    );
  });

  it('when a chunk of a snapshot is missing or changed', async () => {
    await expectFound(
      (level) => level.del(chunkKey(1, 5, 0)),
      /snapshot 5 of group 1 has 0 chunks of 0 bytes/,
    );
    await expectFound(
      (level) => level.put(chunkKey(1, 5, 0), Buffer.alloc(5004)),
      /chunk 0 of snapshot 5 of group 1 has checksum/,
    );
  });

  it('after a chunk was missing while the node ran', async () => {
    const directory = await specimen.copy(specimen.closed);
    const store = await openStore(directory, IDENTITY, {
      wrapDatabase: (database) => ({
        syncedBatch: (operations, done) => database.syncedBatch(operations, done),
        get: async (key) => (key.equals(chunkKey(1, 5, 0)) ? undefined : database.get(key)),
        scan: (range, visit) => database.scan(range, visit),
        compact: (range) => database.compact(range),
        close: () => database.close(),
      }),
    });
    await expect(store.readSnapshotChunk(1, 5, 0)).rejects.toMatchObject({ code: 'STORAGE_DAMAGED' });
    await store.close();
    await expectRefusedForEver(directory, /chunk 0 of snapshot 5 of group 1 is missing/);
  });
});
