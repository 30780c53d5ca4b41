/**
 * `npm run soak`: a long run of `npm run jepsen`. In the first quarter all kinds of failures happen, afterwards only
 * those that leave processes alive. From then on their memory, files and disk must stop growing.
 */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { integerOption } from '../../src/cli/options.ts';
import { runOnce } from '../jepsen/run.ts';
import { verdictLines } from '../jepsen/verdict.ts';
import { type Plateau, plateausOf, type Sample } from './plateau.ts';
import { sample } from './sampler.ts';

interface Options {
  readonly minutes: number;
  readonly seed?: number;
  readonly out: string;
}

const MINUTES_MIN = 3;
const MINUTES_MAX = 24 * 60;
const FIRST = ['kill', 'pause', 'partition', 'graceful-restart', 'membership', 'disk'];
const LASTING = ['pause', 'partition', 'slow-disk', 'clock'];
const PROGRESS_MILLIS = 60_000;
/** Nodes that do not answer are left out. */
const RECENT_MILLIS = 15_000;
/** Fraction of the run before measuring starts. Earlier, processes have just been restarted. */
const PLATEAU_FROM_FRACTION = 0.3;
const EXIT_CODES = { kept: 0, broken: 1, undecided: 2 } as const;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function minutes(text: string): number {
  const value = Number(text);
  if (!(value >= MINUTES_MIN && value <= MINUTES_MAX))
    throw new InvalidArgumentError(`must be from ${MINUTES_MIN} to ${MINUTES_MAX}`);
  return value;
}

function progressOf(samples: readonly Sample[]): string {
  const since = (samples.at(-1)?.atMillis ?? 0) - RECENT_MILLIS;
  const latest = new Map(samples.filter(({ atMillis }) => atMillis > since).map((each) => [each.node, each]));
  const nodes = [...latest.values()].map(
    ({ node, heapMiB, memoryMiB, files, diskMiB }) =>
      `node ${node}: heap ${heapMiB.toFixed(0)}, memory ${memoryMiB.toFixed(0)}, disk ${diskMiB.toFixed(1)} MiB, ${files} files`,
  );
  return nodes.join('; ');
}

function lineOf({ node, measure, samples, before, last, isReached }: Plateau): string {
  const levels = `${before.toFixed(1)} then ${last.toFixed(1)}`;
  return `  node ${node} ${measure.padEnd(9)} ${levels.padEnd(20)} ${samples} samples: ${isReached ? 'plateau' : 'GROWS'}`;
}

async function soak({ minutes: length, seed = randomInt(2 ** 31), out }: Options): Promise<void> {
  const millis = length * 60_000;
  const directory = join(out, `soak-${seed}`);
  const samples: Sample[] = [];
  const startedMillis = performance.now();
  print(`${length} minutes, seed ${seed}, ${directory}`);
  const progress = setInterval(() => {
    const minute = Math.round((performance.now() - startedMillis) / 60_000);
    print(`minute ${minute}: ${progressOf(samples)}`);
  }, PROGRESS_MILLIS);
  const { verdict, processes, summary, outcome } = await runOnce({
    nodes: 3,
    millis,
    nemeses: FIRST,
    lasting: LASTING,
    seed,
    directory,
    print,
    watch: (cluster) => sample(cluster, startedMillis, (each) => samples.push(each)),
  });
  clearInterval(progress);
  writeFileSync(join(directory, 'samples.json'), JSON.stringify(samples));
  for (const line of verdictLines({ ...verdict, checks: [...verdict.checks, processes] })) print(`  ${line}`);
  const plateaus = plateausOf(samples, millis * PLATEAU_FROM_FRACTION);
  for (const plateau of plateaus) print(lineOf(plateau));
  const growing = plateaus.filter(({ isReached }) => !isReached);
  const end =
    plateaus.length === 0
      ? 'no process lived long enough to judge'
      : `${growing.length} of ${plateaus.length} measures grow`;
  print(`  ${summary.faults} faults, longest gap ${summary.longestGapMillis} ms: ${outcome}; ${end}`);
  process.exitCode = growing.length > 0 ? 1 : plateaus.length === 0 ? 2 : EXIT_CODES[outcome];
}

await new Command()
  .name('npm run soak --')
  .description(
    'Runs a cluster of real processes for long, with a mixed load and faults, and checks that their memory, files and disk stop growing.\n' +
      'Exit code 0: the cluster kept its promises and growth stopped; 1: not; 2: not everything could be judged.',
  )
  .requiredOption('--minutes <m>', `how long, ${MINUTES_MIN} to ${MINUTES_MAX}`, minutes)
  .option('--seed <s>', 'of all random draws; random if omitted', integerOption)
  .option('--out <dir>', 'a folder per run is made there', './jepsen')
  .action(soak)
  .parseAsync();
process.exit();
