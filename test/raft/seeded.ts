/** Random numbers for tests, always from a seed that a failing test prints. */
import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';
import type { RandomBelow } from '../../raft/core-state.ts';

/** A source of whole numbers in [0, bound), the same for the same seed. */
export function seeded(seed: number): RandomBelow {
  const generator = xoroshiro128plus(seed);
  return (bound) => uniformInt(generator, 0, bound - 1);
}

/** Runs `body` for each seed; an error names the seed and how to run it alone. */
export function forEachSeed(seeds: readonly number[], body: (seed: number) => void): void {
  const replayed = process.env['RAFT_SEED'];
  for (const seed of replayed === undefined ? seeds : [Number(replayed)]) {
    try {
      body(seed);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${reason} (replay with RAFT_SEED=${seed})`, { cause: error });
    }
  }
}

/** The same for a body that waits. */
export async function eachSeed(
  seeds: readonly number[],
  body: (seed: number) => Promise<void>,
): Promise<void> {
  const replayed = process.env['RAFT_SEED'];
  for (const seed of replayed === undefined ? seeds : [Number(replayed)]) {
    try {
      await body(seed);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${reason} (replay with RAFT_SEED=${seed})`, { cause: error });
    }
  }
}

/** Multiplies the number of seeds of `npm test`, for longer runs. */
export const ROUNDS = Number(process.env['TEST_ROUNDS'] ?? 1);
/**
 * For tests of ten seconds and more that repeat a smaller one: `it.runIf(IS_LONG)` runs them in `npm run test:long`
 * only.
 */
export const IS_LONG = ROUNDS > 1;
if (!Number.isSafeInteger(ROUNDS) || ROUNDS < 1 || ROUNDS > 1_000) {
  throw new RangeError(`TEST_ROUNDS must be a whole number from 1 to 1000, and is ${ROUNDS}`);
}

/** A fixed set of seeds, and a few that differ from run to run. */
export function someSeeds(fixed: number, fresh: number): number[] {
  return seedsWith(
    Array.from({ length: ROUNDS * fixed }, (_, i) => i + 1),
    ROUNDS * fresh,
  );
}

/** The fixed seeds, and more seeds that differ from run to run. */
export function seedsWith(fixed: readonly number[], fresh: number): number[] {
  const drawn = Array.from({ length: fresh }, () => 1_000_000 + Math.floor(Math.random() * 1_000_000_000));
  return [...fixed, ...drawn];
}
