/** The command `npm run mutants`: puts known bugs into the nodes and tells what catches each; survivors are holes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { MUTANTS, MUTANTS_BY_AREA, mutantOf } from './all.ts';
import { runMutants } from './run.ts';
import { markdownOf, type Row, rowOf, rowsOf } from './table.ts';

const FILE = 'test/sim/MUTANTS.md';

interface Options {
  readonly seeds: number;
  readonly seed: number;
  readonly jobs: number;
  readonly only?: readonly string[];
  readonly area?: string;
  readonly crashPoints?: true;
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
  .option('--seed <s>', `the first of them, after the one that ${FILE} remembers`, wholeNumber, 1)
  .option('--only <ids>', 'only these mutants, separated by commas', (ids: string) => ids.split(','))
  .option('--area <name>', `one of ${Object.keys(MUTANTS_BY_AREA).join(', ')}`, areaOf)
  .option('--jobs <n>', 'how many at a time', wholeNumber, availableParallelism())
  .option('--crash-points', 'crashes at every I/O boundary of the short scripts instead of seeds')
  .option('--write', `keep the table in ${FILE}`)
  .parse()
  .opts<Options>();

const remembered = existsSync(FILE) ? rowsOf(readFileSync(FILE, 'utf8')) : new Map<string, Row>();
const inArea = options.area === undefined ? MUTANTS : (MUTANTS_BY_AREA[options.area] ?? []);
const mutants = options.only === undefined ? inArea : options.only.map(mutantOf);
const plan = {
  seeds: Array.from({ length: options.seeds }, (_, i) => options.seed + i),
  remembered: new Map([...remembered].flatMap(([id, { seed }]) => (seed === undefined ? [] : [[id, seed]]))),
  crashPoints: options.crashPoints === true,
};
const survivors: string[] = [];
const rows = new Map(remembered);
await runMutants(mutants, { plan, jobs: Math.max(1, options.jobs) }, (mutant, fate) => {
  const row = rowOf(mutant, fate);
  rows.set(mutant.id, row);
  if (fate.caughtBy === undefined) survivors.push(mutant.id);
  const seed = row.seed === undefined ? '' : `seed ${row.seed}`;
  process.stdout.write(`${row.id.padEnd(5)} ${seed.padEnd(9)} ${row.bug}: ${row.caughtBy}\n`);
});
if (options.write === true) {
  const areas = Object.entries(MUTANTS_BY_AREA).map(
    ([area, list]) =>
      [area, list.flatMap(({ id, bug }) => (rows.has(id) ? [{ ...rows.get(id)!, bug }] : []))] as const,
  );
  writeFileSync(FILE, markdownOf(new Map(areas)));
}
process.stdout.write(`survivors: ${survivors.length === 0 ? 'none' : survivors.join(', ')}\n`);
process.exitCode = survivors.length > 0 ? 1 : 0;
