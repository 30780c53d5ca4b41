/**
 * The command `npm run jepsen`: runs a cluster of real processes under faults, and reports whether it kept its
 * promises.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { integerOption } from '../../src/cli/options.ts';
import { NEMESES } from './nemesis/all.ts';
import { NODE_MUTANTS } from './mutants.ts';
import { nemesesOf, type Outcome, type RunOptions, runOnce } from './run.ts';
import { verdictLines } from './verdict.ts';

interface Options {
  readonly minutes: number;
  readonly nodes: number;
  readonly nemesis: readonly string[];
  readonly seed?: number;
  readonly out: string;
  readonly all?: true;
  readonly mutants?: true;
}

const MINUTES_MAX = 24 * 60;
const ALL_MINUTES = 2;
/** A cluster must have grown before it can shrink. */
const COMPANIONS: Readonly<Record<string, readonly string[]>> = {
  'remove-node': ['add-node', 'remove-node'],
};
/** A ring needs more than three nodes, and a bridge joins two sides of more than one node each. */
const NEEDS_FIVE = ['partition-majorities-ring', 'partition-bridge'];

function minutes(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= MINUTES_MAX))
    throw new InvalidArgumentError(`must be more than 0, at most ${MINUTES_MAX}`);
  return value;
}

function nodes(text: string): number {
  if (text !== '3' && text !== '5') throw new InvalidArgumentError('must be 3 or 5');
  return Number(text);
}

function names(text: string): string[] {
  const list = text.split(',').filter((name) => name !== '');
  try {
    nemesesOf(list);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
  return list;
}

function isAlone(name: string): boolean {
  return NEMESES.some((nemesis) => nemesis.name === name && nemesis.isAlone === true);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const WORDS = { kept: 'kept', broken: 'BROKEN', undecided: 'UNDECIDED' } as const;
const EXIT_CODES = { kept: 0, broken: 1, undecided: 2 } as const;

/** Runs once and prints a summary. Returns whether the cluster kept its promises. */
async function one(options: RunOptions): Promise<Outcome> {
  print(`${options.nemeses.join(',') || 'no nemesis'}: seed ${options.seed}, ${options.directory}`);
  const { verdict, processes, summary, outcome } = await runOnce(options);
  for (const line of verdictLines({ ...verdict, checks: [...verdict.checks, processes] })) print(`  ${line}`);
  const { faults, longestGapMillis } = summary;
  print(`  ${faults} faults, longest gap ${longestGapMillis} ms: ${WORDS[outcome]}`);
  return outcome;
}

/** Runs with bugs in real nodes: each bug must be caught. Returns the bugs that were not. */
async function runMutants(first: number, out: string): Promise<string[]> {
  const survivors: string[] = [];
  for (const { id, bug, nemeses, minutes: length } of NODE_MUTANTS) {
    print(`${id}, ${bug}:`);
    const directory = join(out, `${id}-${first}`);
    const millis = length * 60_000;
    const options = { nodes: 3, millis, nemeses, seed: first, directory, print: () => {}, mutant: id };
    const { verdict, processes, outcome } = await runOnce(options);
    const found = [...verdict.checks, processes].filter(({ status }) => status === 'violation');
    for (const { name, violations, findings } of found)
      print(`  ${name} (${violations}): ${findings[0] ?? ''}`);
    // An undecided run does not count as caught.
    print(outcome === 'broken' ? '  caught' : '  SURVIVED');
    if (outcome !== 'broken') survivors.push(id);
  }
  return survivors;
}

async function main(): Promise<void> {
  const program = new Command('jepsen')
    .description(
      'Runs a cluster of real processes, injects faults, and judges the answers that clients got.\n' +
        'Exit code 0: the cluster kept its promises; 1: it did not; 2: not everything could be judged.',
    )
    .option(
      '--minutes <m>',
      `duration, may be a fraction (default 1; ${ALL_MINUTES} each with --all)`,
      minutes,
    )
    .option('--nodes <n>', 'number of nodes, 3 or 5', nodes, 3)
    .option('--nemesis <a,b,c>', 'nemeses or whole families, comma-separated; all if omitted', names)
    .option('--seed <s>', 'of all random draws; random if omitted', integerOption)
    .option('--out <dir>', 'a folder per run is made there', './jepsen')
    .option('--all', 'every nemesis in turn, each in a run of its own')
    .option('--mutants', 'put known bugs into the nodes, and check that each is found')
    .parse();
  const options = program.opts<Options>();
  const first = options.seed ?? randomInt(2 ** 31);
  if (options.mutants === true) {
    const survivors = await runMutants(first, options.out);
    print(`survivors: ${survivors.length === 0 ? 'none' : survivors.join(', ')}`);
    process.exitCode = survivors.length === 0 ? 0 : 1;
    return;
  }
  const usual = NEMESES.filter(({ isBeyondPromise }) => isBeyondPromise !== true).map(({ name }) => name);
  const together = usual.filter((name) => !isAlone(name));
  const runs =
    options.all === true ? usual.map((name) => COMPANIONS[name] ?? [name]) : [options.nemesis ?? together];
  const notKept: string[] = [];
  let worst: Outcome = 'kept';
  for (const [i, nemeses] of runs.entries()) {
    const outcome = await one({
      nodes: options.all === true && nemeses.some((name) => NEEDS_FIVE.includes(name)) ? 5 : options.nodes,
      millis: (options.minutes ?? (options.all === true ? ALL_MINUTES : 1)) * 60_000,
      nemeses,
      seed: first + i,
      directory: join(options.out, `${nemeses.length === 1 ? nemeses[0] : 'mix'}-${first + i}`),
      print,
    });
    if (outcome === 'kept') continue;
    notKept.push(`${nemeses.join(',')} ${WORDS[outcome]}`);
    if (worst !== 'broken') worst = outcome;
  }
  print(notKept.length === 0 ? 'the cluster kept its promises in every run' : notKept.join('; '));
  process.exitCode = EXIT_CODES[worst];
}

await main();
// A connection that a fault left open must not keep this process alive.
process.exit();
