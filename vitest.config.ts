import { defineConfig, type Plugin } from 'vitest/config';

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

const mutant = process.env['QUORATE_MUTANT'];

/** A hang must end at some time. Nothing is called wrong for being slow: the machine may have other things to do. */
const HANGS_MILLIS = 300_000;

export default defineConfig({
  plugins: mutant === undefined ? [] : [mutated(mutant)],
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: HANGS_MILLIS,
    hookTimeout: HANGS_MILLIS,
    teardownTimeout: HANGS_MILLIS,
  },
});
