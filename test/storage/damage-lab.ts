/** A database with a known history, functions that damage its files, and the check that it is refused. */
import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Level } from 'level';
import { expect } from 'vitest';
import type { GroupId, StoredGroup } from '../../raft/types.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import { openStore } from '../../storage/open-store.ts';
import {
  IDENTITY,
  append,
  chunk,
  copyAsAfterCrash,
  createStore,
  entries,
  entry,
  meta,
  scratch,
  staging,
  written,
} from './fixtures.ts';

export type Content = Record<GroupId, StoredGroup | undefined>;
export type RawLevel = Level<Buffer, Buffer>;

export const ENTRIES = 200;
const ENTRY_BYTES = 230;

async function contentOf(store: LevelStore): Promise<Content> {
  const content: Content = {};
  for (const group of store.groups()) content[group] = await store.load(group);
  return content;
}

export async function contentAt(directory: string): Promise<Content> {
  const store = await openStore(directory, IDENTITY);
  try {
    return await contentOf(store);
  } finally {
    await store.close();
  }
}

/** Writes a history: every batch touches two of three groups, group 1 has a snapshot. */
async function fill(store: LevelStore): Promise<void> {
  await written(store, [append(1, entries(1, 5), 5), append(2, [entry(1)])]);
  await written(store, [
    {
      group: 1,
      entries: [],
      compactTo: { index: 4, term: 1, timeMillis: 40 },
      stage: staging(5, 0, chunk(3, 5000)),
      snapshot: meta(5, [chunk(3, 5000)]),
    },
  ]);
  // Group 2 votes early and writes nothing more: a hole in the log could lose its vote.
  await written(store, [{ group: 2, hardState: { term: 9, vote: 3, commit: 0 }, entries: [] }]);
  for (let index = 1; index <= ENTRIES; index += 1) {
    const other = append(1, entries(5 + index, 5 + index, 1, ENTRY_BYTES), 4 + index);
    await written(store, [append(0, entries(index, index, 1, ENTRY_BYTES), index - 1), other]);
  }
}

export async function rawly(directory: string, act: (level: RawLevel) => Promise<void>): Promise<void> {
  const level: RawLevel = new Level<Buffer, Buffer>(directory, {
    keyEncoding: 'buffer',
    valueEncoding: 'buffer',
    compression: false,
  });
  await level.open();
  try {
    await act(level);
  } finally {
    await level.close();
  }
}

/** The largest file with this ending. */
export async function fileOf(directory: string, ending: RegExp): Promise<string> {
  const paths = (await readdir(directory))
    .filter((name) => ending.test(name))
    .map((name) => join(directory, name));
  const sized = await Promise.all(paths.map(async (path) => ({ path, size: (await stat(path)).size })));
  const [largest] = sized.sort((a, b) => b.size - a.size);
  if (largest === undefined) throw new Error(`no file like ${String(ending)} in ${directory}`);
  return largest.path;
}

export async function flipBit(path: string, at: (size: number) => number): Promise<void> {
  const bytes = await readFile(path);
  const position = at(bytes.length);
  bytes[position] = (bytes[position] ?? 0) ^ 0x10;
  await writeFile(path, bytes);
}

/** Expects a refusal that names the damage and the remedy, at this start and at the next. */
export async function expectRefusedForEver(directory: string, damage: RegExp): Promise<void> {
  for (const reason of [damage, /found at an earlier start/]) {
    const error: unknown = await openStore(directory, IDENTITY).then(
      async (store) => {
        await store.close();
        return undefined;
      },
      (refusal: unknown) => refusal,
    );
    expect(error).toMatchObject({ code: 'STORAGE_DAMAGED', name: 'StorageDamageError' });
    const message = error instanceof Error ? error.message : '';
    expect(message).toMatch(damage);
    expect(message).toMatch(reason);
    expect(message).toContain('must not vote again');
    expect(message).toContain('under a new node id');
  }
}

/** The history on disk, in three states. */
export interface Specimen {
  /** After its process was killed. */
  readonly killed: string;
  /** After a clean stop. */
  readonly closed: string;
  /** After LevelDB moved all data into a table. */
  readonly tables: string;
  readonly original: Content;
  /** A new copy of one of the three states. */
  copy(state: string): Promise<string>;
  remove(): Promise<void>;
}

export async function makeSpecimen(): Promise<Specimen> {
  const { directory: root, remove } = await scratch();
  const live = join(root, 'live');
  const killed = join(root, 'killed');
  const closed = join(root, 'closed');
  const tables = join(root, 'tables');
  const store = await createStore(live);
  await fill(store);
  const original = await contentOf(store);
  await copyAsAfterCrash(live, killed);
  await store.close();
  await copyAsAfterCrash(live, closed);
  await rawly(live, async (level) => {
    if (!('compactRange' in level) || typeof level.compactRange !== 'function')
      throw new Error('no compactRange');
    await level.compactRange(Buffer.of(0), Buffer.of(255));
  });
  await copyAsAfterCrash(live, tables);
  let copies = 0;
  const copy = async (state: string): Promise<string> => {
    copies += 1;
    const directory = join(root, `copy-${copies}`);
    await copyAsAfterCrash(state, directory);
    return directory;
  };
  return { killed, closed, tables, original, copy, remove };
}
