/** The reader of LevelDB's tables and of its MANIFEST, on files that LevelDB wrote. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Level } from 'level';
import { beforeAll, describe, expect, it } from 'vitest';
import { inspectManifest } from '../../storage/leveldb-manifest.ts';
import { damageInTable } from '../../storage/leveldb-table.ts';
import { scratch } from './fixtures.ts';

/** The last eight bytes of a footer are its magic number, and its block handles seldom fill the rest. */
const MAGIC_BYTES = 8;

const tables = new Map<string, Buffer>();
let manifest: Buffer;

beforeAll(async () => {
  const { directory, remove } = await scratch();
  const level = new Level<Buffer, Buffer>(directory, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    compression: false,
    writeBufferSize: 64 << 10,
  });
  // Tables of several levels: many values are overwritten, and some are deleted.
  for (let i = 0; i < 4_000; i += 1) {
    const key = Buffer.from(String(i % 700));
    if (i % 9 === 0) await level.del(key);
    else await level.put(key, Buffer.alloc(10 + (i % 300), i));
  }
  await level.close();
  const names = await readdir(directory);
  for (const name of names)
    if (name.endsWith('.ldb')) tables.set(name, await readFile(join(directory, name)));
  manifest = await readFile(join(directory, names.find((name) => name.startsWith('MANIFEST')) ?? ''));
  await remove();
});

describe('a table of LevelDB', () => {
  it('is intact as it was written', () => {
    expect(tables.size).toBeGreaterThan(1);
    expect([...tables].filter(([, table]) => damageInTable(table) !== undefined)).toEqual([]);
  });

  it('is damaged if any bit flips, except in the unused part of its footer', () => {
    for (const [name, table] of tables) {
      const end = table.length - 48;
      const places = Array.from({ length: 200 }, (_, i) => Math.floor((end * i) / 200));
      for (const at of [...places, end, table.length - MAGIC_BYTES, table.length - 1]) {
        table[at] = (table[at] ?? 0) ^ 4;
        expect(damageInTable(table), `${name} at ${at}`).toBeLessThanOrEqual(Math.max(at, end));
        table[at] = (table[at] ?? 0) ^ 4;
      }
    }
  });

  it('is damaged when it is cut short or empty', () => {
    const [table = Buffer.alloc(0)] = tables.values();
    for (const bytes of [0, 7, 47, 48, 100, table.length - 1])
      expect(damageInTable(table.subarray(0, bytes)), `${bytes} bytes`).not.toBe(undefined);
  });
});

describe('the MANIFEST', () => {
  it('names the tables in use, also after others were made and deleted', () => {
    const numbers = [...tables.keys()].map((name) => Number.parseInt(name, 10));
    const { tables: inUse, oldest } = inspectManifest('MANIFEST-000001', manifest);
    // Tables that a compaction has just replaced may not be deleted yet.
    expect(numbers).toEqual(expect.arrayContaining([...inUse]));
    expect(inUse.size).toBeGreaterThan(0);
    expect(oldest).toBeGreaterThan(0);
  });
});
