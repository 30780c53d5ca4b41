/**
 * Runs every parser a few hundred times: it reads sound inputs, reads or refuses damaged ones, and handles all former
 * findings.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ROUNDS, seeded } from '../raft/seeded.ts';
import { CPU_MILLIS_MAX, execute, Finding } from './execute.ts';
import { findingFiles, readFinding, writeFinding } from './findings.ts';
import { Fuzzer } from './fuzzer.ts';
import { mutate } from './mutate.ts';
import { findingOf, shrunk } from './shrink.ts';
import type { Target } from './target.ts';
import { targetOf, TARGETS } from './targets/all.ts';

const SOUND_RUNS = 25 * ROUNDS;
const DAMAGED_RUNS = 75 * ROUNDS;

describe.each(TARGETS.map((target) => [target.name, target] as const))('%s', (_, target) => {
  it('reads sound inputs', async () => {
    await fc.assert(
      fc.asyncProperty(target.sound, async (bytes) => {
        expect(await execute(target, Buffer.from(bytes))).toMatch(/^read/);
      }),
      { numRuns: SOUND_RUNS },
    );
  });

  it('reads or refuses damaged inputs', async () => {
    const { sound, near = sound, bytesMax, words = [] } = target;
    const made = fc.oneof(sound, near);
    await fc.assert(
      fc.asyncProperty(made, made, fc.nat(), async (bytes, other, seed) => {
        const input = mutate(bytes, { below: seeded(seed), other, words }, bytesMax);
        expect(await execute(target, input)).toMatch(/^(read|refused: .)/s);
      }),
      { numRuns: DAMAGED_RUNS },
    );
  });
});

describe('a former finding', () => {
  it.each(findingFiles())('is handled: %s', async (path) => {
    const { target, input } = readFinding(path);
    expect(await findingOf(targetOf(target), input)).toBeUndefined();
  });
});

/** A parser that calls `harm` for inputs with this byte. */
function harmed(harm: () => unknown): Target {
  return {
    name: 'harmed',
    parser: 'none',
    sound: fc.uint8Array({ minLength: 1, maxLength: 9 }),
    bytesMax: 64,
    bytesPerByteMax: 16,
    run: (input) => {
      if (input.includes(0x7f)) harm();
      return 'read';
    },
  };
}

async function foundIn(target: Target): Promise<unknown> {
  const executions = 20_000;
  return new Fuzzer(target, 1).run(executions).catch((error: unknown) => error);
}

describe('the fuzzer', () => {
  let kept: unknown;

  it.each([
    [
      'an error that is not one of the parser',
      () => {
        throw new TypeError('what');
      },
      /TypeError: what/,
    ],
    [
      'a parser that takes long',
      () => {
        const until = process.cpuUsage().user + 1_000 * (CPU_MILLIS_MAX + 10);
        while (process.cpuUsage().user < until);
      },
      /take \d+ ms/,
    ],
    [
      'a parser that takes much memory',
      () => {
        kept = Buffer.alloc(4 << 20);
      },
      /allocate \d+ bytes/,
    ],
  ])('finds %s', async (_, harm, message) => {
    const found = await foundIn(harmed(harm));
    expect(found).toBeInstanceOf(Finding);
    expect(found).toMatchObject({ message: expect.stringMatching(message) as string });
    expect(found instanceof Finding && found.input.includes(0x7f)).toBe(true);
  });

  it('finds nothing in a correct parser', async () => {
    expect(await foundIn(harmed(() => kept))).toBeUndefined();
  });

  it('tries the same inputs for the same seed', async () => {
    const [once, again] = [1, 2].map(() => {
      const tried: string[] = [];
      const target = {
        ...harmed(() => {}),
        run: (input: Buffer) => `read ${tried.push(input.toString('hex'))}` as const,
      };
      return { tried, fuzzer: new Fuzzer(target, 7) };
    });
    await once?.fuzzer.run(500);
    await again?.fuzzer.run(500);
    expect(again?.tried).toEqual(once?.tried);
    expect(new Set(once?.tried).size).toBeGreaterThan(300);
  });

  it('shrinks a finding to the bytes that it needs', async () => {
    const target = harmed(() => {
      throw new TypeError('what');
    });
    const finding = await findingOf(target, Buffer.from('many bytes \x7f and more'));
    expect(finding && (await shrunk(target, finding)).input).toEqual(Buffer.of(0x7f));
  });

  it('makes no input longer than the target takes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(), (bytes, seed) => {
        const chance = { below: seeded(seed), other: bytes, words: ['word'] };
        expect(mutate(bytes, chance, 100).length).toBeLessThanOrEqual(100);
      }),
    );
  });

  it('writes a finding so that it can be read again, and refuses a file that is none', () => {
    const directory = mkdtempSync(join(tmpdir(), 'quorate-fuzz-'));
    try {
      const input = Buffer.from(Array.from({ length: 300 }, (_, i) => i & 0xff));
      const path = writeFinding(
        new Finding(
          harmed(() => {}),
          input,
          'broke\nit',
        ),
        directory,
      );
      expect(findingFiles(directory)).toEqual([path]);
      expect(readFinding(path)).toEqual({ target: 'harmed', what: 'harmed: broke it', input });
      writeFileSync(path, 'harmed\nwhat\nxyz\n');
      expect(() => readFinding(path)).toThrow(RangeError);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
