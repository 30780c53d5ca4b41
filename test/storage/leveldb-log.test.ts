/** The reader of LevelDB's log, on a log that LevelDB wrote. */
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { BLOCK_BYTES, HEADER_BYTES, inspectLog } from '../../storage/leveldb-log.ts';
import { fileOf, rawly } from './damage-lab.ts';
import { scratch } from './fixtures.ts';

const PAGE = 4096;

let log: Buffer;
/** The position at which each batch begins. */
let starts: number[];
let lastStart: number;

beforeAll(async () => {
  const { directory, remove } = await scratch();
  // Batches within a block, across blocks, of several blocks, and small ones in between.
  const sizes = [10, 20_000, 20_000, 100_000, 5, 70_000, 300, 300, 90_000];
  starts = [];
  await rawly(directory, async (level) => {
    const path = await fileOf(directory, /\.log$/);
    for (const [i, size] of sizes.entries()) {
      starts.push((await readFile(path)).length);
      await level.put(Buffer.of(i), Buffer.alloc(size, i + 1), { sync: true });
    }
    log = await readFile(path);
  });
  lastStart = starts.at(-1) ?? 0;
  await remove();
});

describe('a log of LevelDB', () => {
  it('is intact as it was written, and when it is empty', () => {
    expect(inspectLog(log)).toEqual({ kind: 'intact' });
    expect(inspectLog(Buffer.alloc(0))).toEqual({ kind: 'intact' });
  });

  it('is intact if it ends between batches, and torn if it ends within one', () => {
    for (const start of starts) expect(inspectLog(log.subarray(0, start))).toEqual({ kind: 'intact' });
    for (let length = 500; length < log.length; length += 997) {
      const at = starts.filter((start) => start < length).at(-1) ?? 0;
      expect(inspectLog(log.subarray(0, length))).toEqual({ kind: 'torn', at });
    }
  });

  it('is torn whichever pages of its last batch are missing', () => {
    const pages = Math.ceil(log.length / PAGE) - Math.floor(lastStart / PAGE);
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: pages, maxLength: pages }), (kept) => {
        fc.pre(kept.includes(false));
        const damaged = Buffer.from(log);
        for (const [i, isKept] of kept.entries()) {
          const page = (Math.floor(lastStart / PAGE) + i) * PAGE;
          if (!isKept) damaged.fill(0, Math.max(page, lastStart), Math.min(page + PAGE, log.length));
        }
        expect(inspectLog(damaged)).toEqual({ kind: 'torn', at: lastStart });
      }),
    );
  });

  it('is damaged if a bit flips anywhere before the last batch', () => {
    fc.assert(
      fc.property(fc.nat({ max: lastStart - 1 }), fc.nat({ max: 7 }), (position, bit) => {
        // The rest of a block after its last header is never read.
        fc.pre(BLOCK_BYTES - (position % BLOCK_BYTES) >= HEADER_BYTES || log[position] !== 0);
        const damaged = Buffer.from(log);
        damaged[position] = (damaged[position] ?? 0) ^ (1 << bit);
        const at = starts.filter((start) => start <= position).at(-1) ?? 0;
        expect(inspectLog(damaged)).toEqual({ kind: 'damaged', at });
      }),
      { numRuns: 50 },
    );
  });

  it('is damaged if a batch in the middle is all zeros, which LevelDB skips silently', () => {
    const at = starts[6] ?? 0;
    expect(inspectLog(Buffer.from(log).fill(0, at, starts[7]))).toEqual({ kind: 'damaged', at });
  });
});
