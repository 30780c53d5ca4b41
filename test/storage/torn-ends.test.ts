/**
 * Incomplete writes that a crash leaves must not be taken for damage, even if clients chose the bytes in them, or if
 * LevelDB itself reports the end of its MANIFEST as damage.
 */
import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Entry } from '../../raft/types.ts';
import { inspectLog } from '../../storage/leveldb-log.ts';
import { openStore } from '../../storage/open-store.ts';
import { contentAt, fileOf, flipBit } from './damage-lab.ts';
import { IDENTITY, append, copyAsAfterCrash, createStore, entries, scratch, written } from './fixtures.ts';

const LOG = /\.log$/;
const MANIFEST = /^.*MANIFEST-\d+$/;
const PAGE = 4096;
const SECTOR = 512;

/** CRC-32C as LevelDB stores it, bit by bit. */
function maskedCrc(bytes: Uint8Array): number {
  let crc = 0xffff_ffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ ((crc & 1) * 0x82f6_3b78);
  }
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282_ead8) >>> 0;
}

/**
 * The beginning of a batch in LevelDB's log, as a client could write it into a user id: type 1 is a whole record, 2 the
 * first part.
 */
function fragment(type: number, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(7 + data.length);
  bytes.writeUInt32LE(maskedCrc(Uint8Array.of(type, ...data)), 0);
  bytes.writeUInt16LE(data.length, 4);
  bytes.writeUInt8(type, 6);
  bytes.set(data, 7);
  return bytes;
}

/** An entry full of user ids that each have the bytes of a batch of LevelDB. */
function planted(index: number, bytes: number): Entry {
  const names: Buffer[] = [];
  for (let i = 0; i * 20 < bytes; i += 1) names.push(fragment(1, Buffer.from(`forged ${i}`.slice(0, 12))));
  return { index, term: 1, timeMillis: index * 10, kind: 'command', data: Buffer.concat(names) };
}

describe('a user id with the bytes of a batch of LevelDB', () => {
  let directory: string;
  let remove: () => Promise<void>;
  let log: Buffer;
  let lastBatch: number;

  beforeAll(async () => {
    const root = await scratch();
    remove = root.remove;
    const live = join(root.directory, 'live');
    directory = join(root.directory, 'killed');
    const store = await createStore(live);
    await written(store, [append(1, [...entries(1, 3), planted(4, 6_000)])]);
    lastBatch = (await readFile(await fileOf(live, LOG))).length;
    await written(store, [append(1, [planted(5, 4_000)])]);
    await copyAsAfterCrash(live, directory);
    await store.close();
    log = await readFile(await fileOf(directory, LOG));
  });
  afterAll(() => remove());

  it('does not make the store take a torn write for damage, torn at any byte', () => {
    const conditions = new Set<string>();
    for (let end = lastBatch + 1; end < log.length; end += 1) {
      for (const torn of [log.subarray(0, end), Buffer.from(log).fill(0, end)]) {
        conditions.add(JSON.stringify(inspectLog(torn)));
      }
    }
    expect([...conditions]).toEqual([JSON.stringify({ kind: 'torn', at: lastBatch })]);
  });

  it('does not make the store take it for damage if only a sector of the torn write is missing', () => {
    for (let from = lastBatch; from < log.length; from += SECTOR) {
      const damaged = Buffer.from(log).fill(0, from, Math.min(from + SECTOR, log.length));
      expect(inspectLog(damaged)).toEqual({ kind: 'torn', at: lastBatch });
    }
  });

  it('does not keep the node from starting', async () => {
    for (const fraction of [0.01, 0.4, 0.9]) {
      const copy = `${directory}-${fraction}`;
      await copyAsAfterCrash(directory, copy);
      const path = await fileOf(copy, LOG);
      await writeFile(path, log.subarray(0, lastBatch + Math.floor((log.length - lastBatch) * fraction)));
      const content = await contentAt(copy);
      expect(content[1]?.entries.map(({ index }) => index)).toEqual([1, 2, 3, 4]);
      expect(content[1]?.entries.at(-1)).toEqual({
        ...planted(4, 6_000),
        data: new Uint8Array(planted(4, 6_000).data),
      });
    }
  });

  it('does not make the store take damage for a torn write', () => {
    for (let at = 20; at < lastBatch; at += 211) {
      const damaged = Buffer.from(log);
      damaged[at] = (damaged[at] ?? 0) ^ 4;
      expect(inspectLog(damaged).kind).toBe('damaged');
    }
  });
});

describe('a log whose last batch is torn', () => {
  it('is no damage at the next start either, even if the start that dropped the batch ended before its first write', async () => {
    const { directory: root, remove } = await scratch();
    onTestFinished(remove);
    const [live, killed] = [join(root, 'live'), join(root, 'killed')];
    const store = await createStore(live);
    await written(store, [append(1, entries(1, 3))]);
    await written(store, [append(1, entries(4, 5))]);
    await copyAsAfterCrash(live, killed);
    await store.close();
    await flipBit(await fileOf(killed, LOG), (size) => size - 50);
    const opening = openStore(killed, IDENTITY, {
      wrapDatabase: (database) => ({
        syncedBatch: (_operations, done) => queueMicrotask(() => done(new Error('IO error: injected'))),
        get: (key) => database.get(key),
        scan: (range, visit) => database.scan(range, visit),
        compact: (range) => database.compact(range),
        close: () => database.close(),
      }),
    });
    await expect(opening).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(await readFile(join(killed, 'LOG'), 'utf8')).toMatch(/\.log: dropping \d+ bytes/);
    // The next start finds the line in LOG, and the one after in LOG.old.
    for (let starts = 0; starts < 2; starts += 1) {
      const content = await contentAt(killed);
      expect(content[1]?.entries).toEqual(entries(1, 3));
    }
  });
});

async function logsOf(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => LOG.test(name)).sort();
}

describe('a MANIFEST whose last edit is torn', () => {
  let root: string;
  let remove: () => Promise<void>;
  /** All files that may exist while LevelDB turns its log into a table: those before and those after. */
  let both: string;
  let manifest: string;
  let whole: Buffer;
  /** The position at which the last edit begins. */
  let edit: number;
  let count: number;

  beforeAll(async () => {
    ({ directory: root, remove } = await scratch());
    const [live, before] = [join(root, 'live'), join(root, 'before')];
    both = join(root, 'both');
    const store = await createStore(live, { writeBufferBytes: 64 * 1024 });
    manifest = (await fileOf(live, MANIFEST)).slice(live.length + 1);
    edit = (await readFile(join(live, manifest))).length;
    whole = Buffer.alloc(0);
    const logs = await logsOf(live);
    for (count = 1; whole.length === 0; count += 1) {
      await rm(before, { recursive: true, force: true });
      await copyAsAfterCrash(live, before);
      await written(store, [append(1, entries(count, count, 1, 20_000))]);
      if ((await logsOf(live)).join() === logs.join()) continue;
      // LevelDB has begun a new log, and now turns the old one into a table, which may take long; then it
      // deletes the old log.
      while ((await logsOf(live)).some((log) => logs.includes(log))) await delay(5);
      whole = await readFile(join(live, manifest));
    }
    count -= 1;
    await copyAsAfterCrash(live, both);
    await store.close();
    const known = await readdir(both);
    for (const name of await readdir(before)) {
      if (!known.includes(name)) await cp(join(before, name), join(both, name));
    }
  });
  afterAll(() => remove());

  async function openedWith(bytes: Buffer, change?: (copy: string) => Promise<void>): Promise<number> {
    const copy = join(root, 'copy');
    await rm(copy, { recursive: true, force: true });
    await copyAsAfterCrash(both, copy);
    await writeFile(join(copy, manifest), bytes);
    await change?.(copy);
    const store = await openStore(copy, IDENTITY);
    const stored = await store.load(1);
    await store.close();
    return stored?.entries.length ?? 0;
  }

  it.each([
    ['cut off', (end: number) => whole.subarray(0, end)],
    ['zeros', (end: number) => Buffer.from(whole).fill(0, end)],
    [
      'zeros to the end of the page',
      (end: number) => Buffer.concat([whole.subarray(0, end), Buffer.alloc(PAGE - (end % PAGE))]),
    ],
  ])('is no damage: %s', async (_name, tornAt) => {
    for (let end = edit; end < whole.length; end += 5) expect(await openedWith(tornAt(end))).toBe(count);
  });

  it('is no damage if the log that it would have named did not exist yet', async () => {
    // Enough of the edit to read a number from: that of a log whose directory entry was not synced.
    const opened = await openedWith(whole.subarray(0, edit + 12), async (copy) => {
      await rm(join(copy, (await logsOf(copy)).at(-1) ?? ''));
    });
    expect(opened).toBe(count - 1);
  });

  it('is damage if the files it replaced are deleted, because then it had been synced', async () => {
    const opening = openedWith(whole.subarray(0, whole.length - 3), async (copy) => {
      await rm(join(copy, (await logsOf(copy))[0] ?? ''));
    });
    await expect(opening).rejects.toMatchObject({ code: 'STORAGE_DAMAGED' });
  });

  it('is damage if another edit follows it', async () => {
    const opening = openedWith(whole, (copy) => flipBit(join(copy, manifest), () => edit - 3));
    await expect(opening).rejects.toThrow(
      /MANIFEST-\d+ cannot be read from byte \d+ on, although later edits follow/,
    );
  });
});
