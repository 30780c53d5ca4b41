import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readArchive } from './archive.ts';
import { checkSnapshots } from './checkers/snapshots.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quorate-test-'));
});
afterEach(async () => rm(folder, { recursive: true }));

const KEPT = '{"msg":"snapshot kept","from":"self"}';
const INSTALLED = '{"msg":"snapshot kept","from":"leader"}';
const up = (snapshotsLoaded: number): string =>
  JSON.stringify({ partitions: 8, snapshotsLoaded, msg: 'node is up' });

async function check(lines: readonly string[], kinds: readonly string[] = []) {
  const path = join(folder, 'node-1.log');
  await writeFile(path, lines.map((line) => `${line}\n`).join(''));
  return checkSnapshots([{ node: 1, path }], { isExpected: true, kinds });
}

const entry = (index: number, term = 1) => ({ index, term, timeMillis: 0, kind: 'command', data: '' });
const line = (entries: readonly object[], compactedTo: number | null, isReplaced = false): string =>
  JSON.stringify({ group: 1, entries, compactedTo, isReplaced });

async function archived(...files: readonly (readonly string[])[]) {
  for (const [i, lines] of files.entries()) {
    await writeFile(join(folder, `node-${i}.jsonl`), lines.map((each) => `${each}\n`).join(''));
  }
  return readArchive(folder);
}

describe('the count of snapshots', () => {
  it('is reported, and ok if there were some', async () => {
    const result = await check([up(0), KEPT, KEPT, INSTALLED, up(2)], ['add-node']);
    expect(result).toMatchObject({ status: 'ok', counts: { taken: 2, installed: 1, startsFromOne: 1 } });
  });

  it.each([
    ['none was taken', [up(0)], []],
    ['no node started from one', [up(0), KEPT, up(0)], []],
    ['no node installed one, though nodes joined', [up(0), KEPT, up(1)], ['add-node']],
  ])('is undecided if %s', async (note, lines, kinds) => {
    expect(await check(lines, kinds)).toMatchObject({ status: 'unknown', note });
  });
});

describe('the archive of logs', () => {
  it('has the deleted entries as they were at their deletion', async () => {
    const archive = await archived([
      line([entry(1), entry(2), entry(3)], null),
      line([entry(2, 2), entry(3, 2)], null),
      line([], 2),
      '{"group":1,"entries":[{"ind',
    ]);
    expect(archive.entriesThrough(1, 2, 2).map(({ index, term }) => [index, term])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect(archive.entriesThrough(1, 3, 1)).toEqual([]);
    expect(archive.conflicts).toEqual([]);
  });

  it('combines the entries of several nodes', async () => {
    const archive = await archived(
      [line([entry(1), entry(2)], 1)],
      [line([], null, true), line([entry(2), entry(3)], 3)],
    );
    expect(archive.entriesThrough(1, 3, 1)).toHaveLength(3);
  });

  it('takes entries that no node deleted behind its own snapshot from a replaced log, if a later common entry shows that the logs are equal', async () => {
    const replaced = [line([entry(1), entry(2), entry(3)], null), line([], null, true)];
    const deleted = [line([], null, true), line([entry(3), entry(4)], 4)];
    const archive = await archived(replaced, deleted);
    expect(archive.entriesThrough(1, 4, 1).map(({ index }) => index)).toEqual([1, 2, 3, 4]);
    const another = await archived(replaced, [line([], null, true), line([entry(3, 2), entry(4, 2)], 4)]);
    expect(another.entriesThrough(1, 4, 2).map(({ index }) => index)).toEqual([3, 4]);
  });

  it('finds two nodes that deleted different entries', async () => {
    const archive = await archived([line([entry(1)], 1)], [line([entry(1, 2)], 1)]);
    expect(archive.conflicts).toEqual(['group 1: node-1.jsonl applied another entry 1 than others did']);
  });
});
