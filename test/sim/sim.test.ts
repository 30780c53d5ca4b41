/** A fixed set of seeds through whole simulated clusters; `npm run sim` runs as many fresh ones as you like. */
import { describe, expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { replayOf } from './replay.ts';
import { runSeed, type RunResult } from './run.ts';
import { Totals } from './totals.ts';

const FIXED = Array.from({ length: 12 }, (_, i) => i + 1);
const hash = await loadHash32();

async function expectKept(seed: number): Promise<RunResult> {
  const result = await runSeed({ seed, hash });
  if (result.violation !== undefined) throw new Error(`${result.violation}\nreplay: ${replayOf(seed)}`);
  return result;
}

describe('whole clusters, simulated', () => {
  const totals = new Totals();

  test.each(FIXED)('seed %i keeps every promise', async (seed) => {
    totals.add(await expectKept(seed));
  });

  test('the seeds reach what they are meant to reach', () => {
    const { grants, faults } = totals.toJSON();
    expect(grants).toBeGreaterThan(1_000);
    expect(Object.keys(faults).length).toBeGreaterThan(15);
  });

  test('the same seed tells the same story, step by step', async () => {
    const first = await expectKept(3);
    expect(await expectKept(3)).toEqual(first);
    expect((await expectKept(4)).hash).not.toBe(first.hash);
  });
});
