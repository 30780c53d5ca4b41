/** Seeds through whole simulated clusters that `npm test` has no time for; most of them differ from run to run. */
import { expect, test } from 'vitest';
import { loadHash32 } from '../../src/partition/hash.ts';
import { seedsWith } from '../raft/seeded.ts';
import { replayOf, runSeed } from './run.ts';

const hash = await loadHash32();

test.each(seedsWith([5, 8], 8))('seed %i keeps every promise', async (seed) => {
  const { violation } = await runSeed({ seed, hash });
  expect(violation, `replay: ${replayOf(seed)}`).toBeUndefined();
});
