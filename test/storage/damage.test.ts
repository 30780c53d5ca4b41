/**
 * Damages the files of a database in one way at a time, as disks and operators do. The store must refuse it, now and at
 * every later start, or lose nothing. The cases are those of the damage matrix in docs/internals/storage-format.md.
 */
import { appendFile, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { entryKey } from '../../storage/keys.ts';
import {
  ENTRIES,
  contentAt,
  expectRefusedForEver,
  fileOf,
  flipBit,
  makeSpecimen,
  rawly,
  type Specimen,
} from './damage-lab.ts';

const LOG = /\.log$/;
const TABLE = /\.ldb$/;
const MANIFEST = /MANIFEST/;

function middle(size: number): number {
  return Math.floor(size / 2);
}

async function tearOff(path: string, bytes: number): Promise<void> {
  await truncate(path, (await stat(path)).size - bytes);
}

/** The effects of a power cut on the batch in flight. */
const LAST_BATCH: readonly [string, (path: string) => Promise<void>][] = [
  ['its end is torn off', (path) => tearOff(path, 50)],
  ['1 bit of it flipped', (path) => flipBit(path, (size) => size - 100)],
  [
    'its end is zeros',
    async (path) => {
      const bytes = await readFile(path);
      await writeFile(path, bytes.fill(0, bytes.length - 300));
    },
  ],
];

describe('a database', () => {
  let specimen: Specimen;

  beforeAll(async () => {
    specimen = await makeSpecimen();
  });
  afterAll(() => specimen.remove());

  it.each(['killed', 'closed', 'tables'] as const)('is whole when nothing was damaged: %s', async (state) => {
    const directory = await specimen.copy(specimen[state]);
    expect(await contentAt(directory)).toEqual(specimen.original);
    expect(await contentAt(directory)).toEqual(specimen.original);
  });

  describe('with a damaged log', () => {
    /**
     * The one damage that cannot be detected after a crash. The batch was synced here, since nothing crashed; but the
     * files
     * are the same as after a power cut in the middle of the last write, before it was answered: any of its pages
     * may have reached the disk. A grant is safe because it is answered only when a quorum has it on disk:
     * the other nodes restore one node's lost tail as long as fewer than a quorum lose theirs. A disk that drops
     * synced writes and keeps the rest intact is more than one node can notice.
     */
    it.each(LAST_BATCH)('112: loses exactly the last batch after a crash: %s', async (_name, damage) => {
      const { original } = specimen;
      const directory = await specimen.copy(specimen.killed);
      await damage(await fileOf(directory, LOG));
      const content = await contentAt(directory);
      expect(content[0]?.entries).toEqual(original[0]?.entries.slice(0, -1));
      expect(content[0]?.hardState.commit).toBe(ENTRIES - 2);
      expect(content[1]?.entries).toEqual(original[1]?.entries.slice(0, -1));
      expect(content[2]).toEqual(original[2]);
      // LevelDB's LOG now says that it dropped something: that must not count as damage later.
      expect(await contentAt(directory)).toEqual(content);
      expect(await contentAt(directory)).toEqual(content);
    });

    it.each(LAST_BATCH)('is refused after a clean stop: %s', async (_name, damage) => {
      const directory = await specimen.copy(specimen.closed);
      await damage(await fileOf(directory, LOG));
      await expectRefusedForEver(directory, /batch \d+ was written: the end of LevelDB's log is missing/);
    });

    it('loses nothing if the beginning of a record follows the last batch', async () => {
      const directory = await specimen.copy(specimen.killed);
      await appendFile(await fileOf(directory, LOG), Buffer.of(1, 2, 3, 4, 5));
      expect(await contentAt(directory)).toEqual(specimen.original);
    });

    it.each([
      ['in the middle', middle],
      ['in the first batch', (): number => 60],
      ['in a checksum', (): number => 2],
      ['in a length', (): number => 4],
      ['in a type', (): number => 6],
    ])('is refused before LevelDB opens it: 1 bit flipped %s', async (_name, at) => {
      const directory = await specimen.copy(specimen.killed);
      const path = await fileOf(directory, LOG);
      await flipBit(path, at);
      const before = await readFile(path);
      await expectRefusedForEver(
        directory,
        /\.log cannot be read from byte \d+ on, although later batches follow/,
      );
      expect(before.equals(await readFile(path))).toBe(true);
    });

    it('112: is refused: a page of zeros in the middle', async () => {
      const directory = await specimen.copy(specimen.killed);
      const path = await fileOf(directory, LOG);
      const bytes = await readFile(path);
      await writeFile(path, bytes.fill(0, 40_960, 45_056));
      await expectRefusedForEver(
        directory,
        /cannot be read from byte 40\d\d\d on, although later batches follow/,
      );
    });

    it('is refused when a newer log follows one that was torn', async () => {
      const directory = await specimen.copy(specimen.killed);
      await tearOff(await fileOf(directory, LOG), 50);
      await writeFile(join(directory, '000999.log'), '');
      await expectRefusedForEver(directory, /although the newer 000999\.log exists/);
    });

    it.each([1, 2])(
      'is refused although others opened it %i times and the damaged log is deleted',
      async (opens) => {
        const directory = await specimen.copy(specimen.killed);
        await flipBit(await fileOf(directory, LOG), middle);
        // The only trace of the damage is a line in LOG, which the next open renames to LOG.old.
        for (let i = 0; i < opens; i += 1) await rawly(directory, async () => {});
        await expectRefusedForEver(directory, /LevelDB reported in its file LOG/);
      },
    );

    it("is refused because of the store's own records when LevelDB's LOG is deleted as well", async () => {
      const directory = await specimen.copy(specimen.killed);
      await flipBit(await fileOf(directory, LOG), middle);
      await rawly(directory, async () => {});
      await rm(join(directory, 'LOG'));
      await rm(join(directory, 'LOG.old'));
      await expectRefusedForEver(directory, /entries \d+ to \d+ of group 0 are missing/);
    });

    it.each(['killed', 'closed'] as const)('is refused when the log is deleted: %s', async (state) => {
      const directory = await specimen.copy(specimen[state]);
      await rm(await fileOf(directory, LOG));
      await expectRefusedForEver(directory, /no LevelDB log \(\*\.log\): it was deleted/);
    });

    it('is refused when the log is emptied, or replaced by one of another number', async () => {
      const emptied = await specimen.copy(specimen.closed);
      await writeFile(await fileOf(emptied, LOG), '');
      await expectRefusedForEver(emptied, /the end of LevelDB's log is missing|record is missing/);
      const replaced = await specimen.copy(specimen.closed);
      await rm(await fileOf(replaced, LOG));
      await writeFile(join(replaced, '000999.log'), '');
      await expectRefusedForEver(replaced, /the log \d+\.log, named by LevelDB's MANIFEST-\d+, is missing/);
    });
  });

  describe('with a damaged table', () => {
    it('is refused if any bit flips, except in the unused part of the footer', async () => {
      // Spread over data, filter, index and footer.
      const { size } = await stat(await fileOf(specimen.tables, TABLE));
      const spread = Array.from({ length: 24 }, (_, i) => Math.floor((size * (2 * i + 1)) / 48));
      const outcomes: string[] = [];
      for (const position of [...spread, size - 3, size - 40, size - 47, size - 70, size - 200]) {
        const directory = await specimen.copy(specimen.tables);
        await flipBit(await fileOf(directory, TABLE), () => position);
        const outcome: unknown = await contentAt(directory).catch((error: unknown) => error);
        const whole = isDeepStrictEqual(outcome, specimen.original);
        const refused = outcome instanceof Error && 'code' in outcome && outcome.code === 'STORAGE_DAMAGED';
        outcomes.push(whole ? 'whole' : refused ? 'refused' : `bit at ${position}: ${String(outcome)}`);
      }
      expect(outcomes.toSpliced(-4, 1)).toEqual(Array.from({ length: 28 }, () => 'refused'));
    });

    it('is refused before LevelDB compacts a table that nothing reads, and stops at an assertion', async () => {
      const directory = await specimen.copy(specimen.tables);
      const table = await fileOf(directory, TABLE);
      // Values that were overwritten, in a table that is in use.
      await rawly(directory, async (level) => {
        for await (const key of level.keys()) await level.del(key);
      });
      await flipBit(table, (size) => Math.floor(size / 2));
      await expectRefusedForEver(directory, /table \d+\.ldb is damaged at byte \d+/);
    });

    it('is refused at every later start after one bit flips', async () => {
      const directory = await specimen.copy(specimen.tables);
      await flipBit(await fileOf(directory, TABLE), (size) => Math.floor(size / 3));
      await expectRefusedForEver(directory, /table \d+\.ldb is damaged/);
    });

    it('is refused when a value changed and LevelDB computed a new checksum for it', async () => {
      const directory = await specimen.copy(specimen.tables);
      await rawly(directory, async (level) => {
        const value = await level.get(entryKey(0, 100));
        if (value === undefined) throw new Error('no entry');
        value[40] = (value[40] ?? 0) ^ 1;
        await level.put(entryKey(0, 100), value);
      });
      await expectRefusedForEver(directory, /entry 100 of group 0 has checksum 0x/);
    });

    it('is refused when a table is deleted', async () => {
      const directory = await specimen.copy(specimen.tables);
      await rm(await fileOf(directory, TABLE));
      await expectRefusedForEver(directory, /missing files/);
    });

    it('is refused when a table is cut short', async () => {
      const directory = await specimen.copy(specimen.tables);
      await truncate(await fileOf(directory, TABLE), 20_000);
      await expectRefusedForEver(directory, /table \d+\.ldb is damaged/);
    });
  });

  describe('with damaged files that name others', () => {
    it('is refused when MANIFEST is empty', async () => {
      const directory = await specimen.copy(specimen.killed);
      await writeFile(await fileOf(directory, MANIFEST), '');
      await expectRefusedForEver(directory, /LevelDB reports: .*no meta-nextfile entry/);
    });

    it.each([4, 12, 40, 60])('is refused when 1 bit of MANIFEST flips at %i', async (at) => {
      const directory = await specimen.copy(specimen.tables);
      await flipBit(await fileOf(directory, MANIFEST), () => at);
      await expectRefusedForEver(directory, /MANIFEST|LevelDB reports/);
    });

    it('is refused when the end of MANIFEST is torn off', async () => {
      const directory = await specimen.copy(specimen.tables);
      await tearOff(await fileOf(directory, MANIFEST), 5);
      await expectRefusedForEver(directory, /is missing|missing files|LevelDB reports/);
    });

    it('is refused when CURRENT is empty', async () => {
      const directory = await specimen.copy(specimen.killed);
      await writeFile(join(directory, 'CURRENT'), '');
      await expectRefusedForEver(directory, /CURRENT contains "", not a file name/);
    });

    it('is refused when CURRENT names a file that is not there', async () => {
      const directory = await specimen.copy(specimen.killed);
      await writeFile(join(directory, 'CURRENT'), 'MANIFEST-000077\n');
      await expectRefusedForEver(directory, /MANIFEST-000077, named by CURRENT, is missing/);
    });

    it('is refused when CURRENT is missing, and is not replaced by a new database', async () => {
      const directory = await specimen.copy(specimen.killed);
      await rm(join(directory, 'CURRENT'));
      await expectRefusedForEver(directory, /CURRENT is missing/);
      expect(await readdir(directory)).not.toContain('CURRENT');
    });

    it("is refused when the store's own file FLOOR is changed or missing", async () => {
      const changed = await specimen.copy(specimen.killed);
      await writeFile(join(changed, 'FLOOR'), 'batch 1 crc 1\n');
      await expectRefusedForEver(changed, /FLOOR contains "batch 1 crc 1/);
      const missing = await specimen.copy(specimen.killed);
      await rm(join(missing, 'FLOOR'));
      await expectRefusedForEver(missing, /FLOOR is missing/);
    });
  });
});
