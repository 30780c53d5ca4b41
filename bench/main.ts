/**
 * `npm run bench`: compares Quorate with other limiters and with servers that do nothing, in one run on one machine. It
 * reports throughput, latency, processor time, disk syncs and memory, as medians and ratios. Absolute numbers say more
 * about the machine than about the limiters.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { directoryOption, integerFrom } from '../src/cli/options.ts';
import { thingsUnderLoad } from './peers/all.ts';
import { SWEEP_IDS, type SweepId, sweepOf } from './peers/quorate.ts';
import { type Cell, estimateMillis, FULL_TIMING, planCells, QUICK_TIMING, type Timing } from './plan.ts';
import { resultsPage } from './report/page.ts';
import { type BenchResults, resultsOf } from './report/results.ts';
import { comparisonTable } from './report/table.ts';
import { runRounds } from './rounds.ts';
import { runProgram, Running } from './running.ts';
import { comparisonsOf } from './summary.ts';

interface BenchOptions {
  readonly quick?: true;
  readonly sweep?: SweepId;
  readonly only: readonly string[];
  readonly rounds?: number;
  readonly seconds?: number;
  readonly warmUp?: number;
  readonly seed: number;
  readonly out: string;
}

const running = new Running();
/** With a larger fraction of unexpected answers, a slow start cannot explain them, and the run fails. */
const UNEXPECTED_FRACTION_MAX = 0.01;

function timingOf({ quick, rounds, seconds, warmUp }: BenchOptions): Timing {
  const usual = quick === true ? QUICK_TIMING : FULL_TIMING;
  return {
    ...usual,
    ...(rounds !== undefined && { rounds }),
    ...(seconds !== undefined && { measuredMillis: seconds * 1_000 }),
    ...(warmUp !== undefined && { firstWarmUpMillis: warmUp * 1_000 }),
  };
}

/** Load average above which other work disturbs the numbers. */
function busyAbove(): number {
  return cpus().length / 4;
}

function sayPlan(cells: readonly Cell[], timing: Timing): void {
  const { rounds, measuredMillis } = timing;
  const minutes = Math.ceil(estimateMillis(cells, timing) / 60_000);
  console.log(
    `${cells.length} cells, ${rounds} rounds of ${measuredMillis / 1_000} s: about ${minutes} minutes`,
  );
  for (const thing of new Set(cells.map((cell) => cell.thing))) {
    const own = cells.filter((cell) => cell.thing === thing);
    console.log(`  ${thing.id.padEnd(14)} ${thing.missing?.() ?? `${own.length} cells`}`);
  }
  console.log('');
}

async function write(out: string, results: BenchResults): Promise<void> {
  await mkdir(out, { recursive: true });
  const json = join(out, 'results.json');
  const page = join(out, 'index.html');
  await writeFile(json, `${JSON.stringify(results, null, 2)}\n`);
  await writeFile(page, resultsPage(results));
  console.log(`\n${json}\n${page}`);
}

function sayResults({ summaries, notes }: BenchResults): void {
  for (const comparison of comparisonsOf(summaries)) console.log(`\n${comparisonTable(comparison)}`);
  if (notes.length > 0) console.log(`\n${notes.join('\n')}`);
}

/** @throws Error if a cell has too many unexpected answers */
function assertExpected({ summaries }: BenchResults): void {
  const wrong = summaries.filter(({ unexpectedFraction }) => unexpectedFraction > UNEXPECTED_FRACTION_MAX);
  const cells = wrong.map(
    ({ cell, unexpectedFraction }) => `${cell} (${(unexpectedFraction * 100).toFixed(1)} %)`,
  );
  if (cells.length > 0)
    throw new Error(`answers that should not be, more than one in a hundred: ${cells.join(', ')}`);
}

async function main(options: BenchOptions): Promise<void> {
  const timing = timingOf(options);
  const { sweep } = options;
  const things = sweep === undefined ? thingsUnderLoad(running) : sweepOf(sweep, running);
  const cells = planCells(things, {
    isQuick: options.quick === true,
    isSweep: sweep !== undefined,
    only: options.only,
  });
  if (cells.length === 0) throw new Error(`--only ${options.only.join(' ')}: there is no such cell`);
  sayPlan(cells, timing);
  const startedAt = new Date();
  const [loadAverageBefore = 0] = loadavg();
  if (loadAverageBefore > busyAbove())
    console.log(
      `this machine has other work to do (load average ${loadAverageBefore.toFixed(1)}): compare ratios only\n`,
    );
  const { seed } = options;
  try {
    const result = await runRounds({ cells, timing, seed, running, say: (line) => console.log(line) });
    const results = resultsOf({ startedAt, loadAverageBefore, timing, seed }, cells, result);
    sayResults(results);
    await write(options.out, results);
    assertExpected(results);
  } finally {
    running.endAll();
  }
}

const program = new Command('npm run bench --')
  .description('Compare Quorate with others, side by side in one run.')
  .option('--quick', 'one short round of the main cells: under three minutes')
  .option('--only <parts...>', 'only cells whose thing/setup/workload contains one of these', [])
  .option('--rounds <n>', 'rounds, each with everything once', integerFrom(1, 1_000))
  .option('--seconds <n>', 'measured seconds of a cell in a round', integerFrom(1, 3_600))
  .option('--warm-up <n>', 'seconds of load before a thing that was just started counts', integerFrom(1, 600))
  .option('--seed <n>', 'seed of the random keys', integerFrom(0, 2 ** 32 - 1), 1)
  .option('--out <dir>', 'where results.json and index.html go', directoryOption, './bench-results')
  .addOption(new Option('--sweep <what>', 'Quorate in several shapes, and nothing else').choices(SWEEP_IDS))
  .action(main);

runProgram(program, running);
