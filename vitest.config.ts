import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** For `npm run mutants`: puts one known bug into the product on its way to the tests. */
async function mutated(id: string): Promise<Plugin> {
  const [{ mutantOf }, { Sources }] = await Promise.all([
    import('./test/sim/mutants/all.ts'),
    import('./test/sim/mutants/places.ts'),
  ]);
  const texts = Sources.read().edited(mutantOf(id).edits ?? []);
  return {
    name: 'mutated',
    enforce: 'pre',
    transform: (_, path) => texts.get(path.replace(`${process.cwd()}/`, '')),
  };
}

/**
 * The longest: of those that begin last, one would run alone for long. Files that wait for processes take turns with those
 * that compute, so that each finds the other beside it.
 */
const FIRST = [
  'test/sim/crash-points.test.ts',
  'test/tls/cluster.test.ts',
  'test/sim/sim.test.ts',
  'test/sim/crash-points.long.test.ts',
  'test/sim/sim.long.test.ts',
  'test/cluster/failover.test.ts',
  'test/cli/refusals.test.ts',
  'test/cluster/graceful-stop.test.ts',
  'test/limiter/memory.test.ts',
  'test/cluster/start-script.test.ts',
  'test/storage/damage.test.ts',
  'test/cluster/rules.test.ts',
  'test/rules/hostile.test.ts',
  'test/cluster/fail-modes.test.ts',
  'test/limiter/meter-histories.test.ts',
  'test/cluster/removed.test.ts',
  'test/raft/random.test.ts',
  'test/cluster/deadline.test.ts',
];
for (const file of FIRST) {
  if (!existsSync(join(import.meta.dirname, file)))
    throw new Error(`${file} is to begin first, and is not there`);
}

function rank({ moduleId }: TestSpecification): number {
  const at = FIRST.findIndex((file) => moduleId.endsWith(file));
  return at === -1 ? FIRST.length : at;
}

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

const mutant = process.env['QUORATE_MUTANT'];

/** A hang must end at some time. Nothing is called wrong for being slow: the machine may have other things to do. */
const HANGS_MILLIS = 900_000;

/** What takes long has a command of its own: `npm run test:long`. */
const LONG = 'test/**/*.long.test.ts';
const IS_DRAWN = /\b(?:ROUNDS|IS_LONG|someSeeds)\b/;
/** For the long run, which has time for what differs from run to run, too. */
const ROUNDS_LONG = '2';

/** Tests that draw so often as `TEST_ROUNDS` says, or have some that are for long runs. */
function drawn(): string[] {
  const paths = readdirSync(join(import.meta.dirname, 'test'), { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`)
    .filter((path) => IS_DRAWN.test(readFileSync(join(import.meta.dirname, path), 'utf8')));
}

export default defineConfig(({ mode }) => ({
  plugins: mutant === undefined ? [] : [mutated(mutant)],
  test: {
    include: mode === 'long' ? [LONG, ...drawn()] : ['test/**/*.test.ts'],
    exclude: mode === 'long' ? [] : [LONG],
    env: mode === 'long' ? { TEST_ROUNDS: process.env['TEST_ROUNDS'] ?? ROUNDS_LONG } : {},
    setupFiles: ['test/byte-equality.ts', 'test/descriptor-equality.ts'],
    pool: 'forks',
    // To load the product anew for each of two hundred files took longer than most of them.
    isolate: false,
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    testTimeout: HANGS_MILLIS,
    hookTimeout: HANGS_MILLIS,
    teardownTimeout: HANGS_MILLIS,
  },
}));
