/**
 * The command `npm run mutants`: puts known bugs into the nodes and prints what catches each. A survivor is a hole in
 * the tests.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { MUTANTS, MUTANTS_BY_AREA, mutantOf, themeOf } from './all.ts';
import type { Mutant } from './mutant.ts';
import { type Fate, runMutants } from './run.ts';
import { effortIn, effortOf, markdownOf, rowOf, rowsOf } from './table.ts';

const FILE = 'test/sim/MUTANTS.md';

interface Options {
  readonly seeds: number;
  readonly seed: number;
  readonly jobs: number;
  readonly only?: readonly string[];
  readonly area?: string;
  readonly crashPoints?: true;
  readonly fresh?: true;
  readonly write?: true;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('must be a whole number');
  return value;
}

function areaOf(text: string): string {
  if (text in MUTANTS_BY_AREA) return text;
  throw new InvalidArgumentError(`must be one of ${Object.keys(MUTANTS_BY_AREA).join(', ')}`);
}

const options = new Command('mutants')
  .description('Runs the simulator on known bugs, each in a process of its own, until a seed catches it.')
  .option('--seeds <n>', 'how many seeds at most', wholeNumber, 200)
  .option('--seed <s>', `the first of them, after the one that ${FILE} names`, wholeNumber, 1)
  .option('--only <ids>', 'only these mutants, separated by commas', (ids: string) => ids.split(','))
  .option('--area <name>', `one of ${Object.keys(MUTANTS_BY_AREA).join(', ')}`, areaOf)
  .option('--jobs <n>', 'how many at a time', wholeNumber, availableParallelism())
  .option('--crash-points', 'crash at every I/O boundary of the short scripts instead of running seeds')
  .option('--fresh', 'new seeds for each mutant, and only the mutants that seeds find')
  .option('--write', `write the results to ${FILE}`)
  .parse()
  .opts<Options>();

const isFresh = options.fresh === true;
const text = existsSync(FILE) ? readFileSync(FILE, 'utf8') : '';
const remembered = rowsOf(text);
const inArea = options.area === undefined ? MUTANTS : (MUTANTS_BY_AREA[options.area] ?? []);
const chosen = options.only === undefined ? inArea : options.only.map(mutantOf);
const isForSeeds = ({ unitTest, script }: Mutant): boolean => unitTest === undefined && script === undefined;
const mutants = isFresh ? chosen.filter(isForSeeds) : chosen;
const plan = {
  /** The seed that caught the mutant before comes first. Fresh seeds differ for every mutant. */
  seedsOf({ id }: Mutant): readonly number[] {
    const first = options.seed + (isFresh ? MUTANTS.findIndex((one) => one.id === id) * options.seeds : 0);
    const seeds = Array.from({ length: options.seeds }, (_, i) => first + i);
    const known = isFresh ? undefined : remembered.get(id)?.seed;
    return known === undefined ? seeds : [known, ...seeds.filter((seed) => seed !== known)];
  },
  crashPoints: options.crashPoints === true,
};
const fates = new Map<string, Fate>();
const rows = new Map(remembered);

/** Called after each mutant, so that a long run that is ended early keeps its results. */
function write(): void {
  const effort = isFresh ? effortOf(fates) : effortIn(text);
  const areas = Object.entries(MUTANTS_BY_AREA).map(
    ([area, list]) =>
      [area, list.flatMap(({ id, bug }) => (rows.has(id) ? [{ ...rows.get(id)!, bug }] : []))] as const,
  );
  writeFileSync(FILE, markdownOf(new Map(areas), effort));
}

await runMutants(mutants, { plan, jobs: Math.max(1, options.jobs) }, (mutant, fate) => {
  const row = rowOf(mutant, themeOf(mutant.id).kind, fate);
  fates.set(mutant.id, fate);
  // A run with fresh seeds only measures the effort. It keeps the seeds that were found before.
  if (!isFresh) rows.set(mutant.id, row);
  const seed = row.seed === undefined ? '' : `seed ${row.seed}`;
  const seconds = fate.cpuSeconds === undefined ? '' : `${fate.cpuSeconds.toFixed(1)} s`;
  process.stdout.write(
    `${row.id.padEnd(5)} ${seconds.padEnd(8)} ${seed.padEnd(12)} ${row.bug}: ${row.caughtBy}\n`,
  );
  if (options.write === true) write();
});
const survivors = mutants.filter(({ id }) => fates.get(id)?.caughtBy === undefined).map(({ id }) => id);
if (isFresh) process.stdout.write(`${effortOf(fates)}\n`);
process.stdout.write(`survivors: ${survivors.length === 0 ? 'none' : survivors.join(', ')}\n`);
process.exitCode = survivors.length > 0 ? 1 : 0;
