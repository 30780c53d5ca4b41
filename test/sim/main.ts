/** The command `npm run sim`: runs seeds, and reports each violation with the command that repeats it. */
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { randomInt } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { crashPoints } from './crash-points/command.ts';
import { replayOf, type RunResult } from './run.ts';
import { type Feature, FEATURES, type Theme } from './features.ts';
import { type FaultName, FAULTS, type Kind, KINDS } from './kinds.ts';
import { runSeeds } from './seed-pool.ts';
import { Totals } from './totals.ts';

interface Options {
  readonly seeds: number;
  readonly seed?: number;
  readonly jobs: number;
  readonly world?: Kind;
  readonly with?: readonly Feature[];
  readonly break?: readonly FaultName[];
  readonly trace?: true;
  readonly json?: true;
  readonly crashPoints?: string | true;
  readonly at?: number;
  readonly variant?: string;
}

const PROGRESS_MILLIS = 5_000;

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('must be a whole number');
  return value;
}

function namesOf<T extends string>(known: readonly T[]): (text: string) => readonly T[] {
  return (text) =>
    text.split(',').map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined) throw new InvalidArgumentError(`must be of ${known.join(', ')}`);
      return found;
    });
}

async function main(): Promise<void> {
  const program = new Command('sim')
    .description(
      'Runs whole clusters on virtual time, network and disks, each from one seed, and checks every step.',
    )
    .option('--seeds <n>', 'how many seeds to run', wholeNumber, 100)
    .option('--jobs <n>', 'on how many cores; --trace needs one alone', wholeNumber, availableParallelism())
    .option(
      '--seed <s>',
      'the first seed; random if omitted. With --crash-points: of the delays, 1 if omitted',
      wholeNumber,
    )
    .addOption(new Option('--world <kind>', 'only worlds of this kind').choices(KINDS))
    .option(
      '--with <features>',
      `only worlds with these, separated by commas: ${FEATURES.join(', ')}`,
      namesOf(FEATURES),
    )
    .option(
      '--break <faults>',
      `only worlds where these break, separated by commas: ${FAULTS.join(', ')}`,
      namesOf(FAULTS),
    )
    .option('--trace', 'print a line for each message, fault and answer')
    .option('--crash-points [script]', 'crash at every I/O boundary of a short script, or of all of them')
    .option('--at <k>', 'with --crash-points: only at this boundary', wholeNumber)
    .option(
      '--variant <name>',
      'with --at: which nodes crash, the fate of their last write, and their return, as in one-lost-later',
    )
    .option('--json', 'end with one line of JSON')
    .parse();
  const options = program.opts<Options>();
  const first = options.seed ?? randomInt(2 ** 31);
  if (options.crashPoints !== undefined) {
    const script = options.crashPoints === true ? undefined : options.crashPoints;
    const isKept = await crashPoints({ ...options, script }, (line) => process.stdout.write(`${line}\n`));
    process.exitCode = isKept ? 0 : 1;
    return;
  }
  const theme: Theme = { kind: options.world, features: options.with, faults: options.break };
  const totals = new Totals();
  // Processor time, since the machine may be busy with other work.
  const startedAt = process.cpuUsage();
  let shownAt = performance.now();
  process.stdout.write(`seeds ${first} to ${first + options.seeds - 1}\n`);
  const finished = (result: RunResult): void => {
    totals.add(result);
    if (result.violation !== undefined) {
      process.stdout.write(`seed ${result.seed}: ${result.violation}\n`);
      process.stdout.write(`  replay: ${replayOf(result.seed, theme)}\n`);
    }
    if (performance.now() - shownAt > PROGRESS_MILLIS) {
      shownAt = performance.now();
      process.stdout.write(`${totals.seeds} of ${options.seeds} seeds, ${totals.violations} violations\n`);
    }
  };
  const say = options.trace === true ? (line: string) => process.stdout.write(`${line}\n`) : undefined;
  await runSeeds({ first, seeds: options.seeds, jobs: options.jobs, theme, say, finished });
  const { user, system } = process.cpuUsage(startedAt);
  const seconds = (user + system) / 1_000_000;
  process.stdout.write(`${totals.summary(seconds)}\n`);
  if (options.json === true) process.stdout.write(`${JSON.stringify(totals)}\n`);
  process.exitCode = totals.violations > 0 ? 1 : 0;
}

await main();
