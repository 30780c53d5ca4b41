/** `npm run fuzz`: runs all targets in turn until the time is over or one has a finding. */
import { randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { Command, InvalidArgumentError } from 'commander';
import { Finding } from './execute.ts';
import { readFinding, writeFinding } from './findings.ts';
import { Fuzzer } from './fuzzer.ts';
import { findingOf, shrunk } from './shrink.ts';
import { targetOf, TARGETS } from './targets/all.ts';
import { Watchdog } from './watchdog.ts';

interface Options {
  readonly minutes: number;
  readonly target?: string;
  readonly seed?: number;
  readonly replay?: string;
}

/** Time for one target before the next one runs. */
const TURN_MILLIS = 5_000;
/** Inputs between two checks of the clock. */
const EXECUTIONS_PER_CHECK = 64;
const MILLIS_PER_MINUTE = 60_000;
const MINUTES_MAX = 10_000;

interface Row {
  readonly fuzzer: Fuzzer;
  millis: number;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function minutes(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= MINUTES_MAX))
    throw new InvalidArgumentError(`must be above 0, and at most ${MINUTES_MAX}`);
  return value;
}

function seedFrom(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value >= 2 ** 31)
    throw new InvalidArgumentError('must be a whole number from 0 to 2147483647');
  return value;
}

async function takeTurns(rows: readonly Row[], millisMax: number): Promise<void> {
  const startedAt = performance.now();
  const left = (): number => millisMax - (performance.now() - startedAt);
  // A short run sees every target too.
  const turnMillis = Math.min(TURN_MILLIS, millisMax / rows.length);
  while (left() > 0) {
    for (const row of rows) {
      if (left() <= 0) return;
      const { fuzzer } = row;
      const before = fuzzer.executions;
      const from = performance.now();
      while (performance.now() - from < turnMillis) await fuzzer.run(EXECUTIONS_PER_CHECK);
      const took = performance.now() - from;
      row.millis += took;
      const rate = Math.round(((fuzzer.executions - before) * 1_000) / took);
      say(
        `${fuzzer.target.name}: ${fuzzer.executions} executions, ${rate} a second, ${fuzzer.outcomes} answers`,
      );
    }
  }
}

function announce(rows: readonly Row[]): void {
  say('');
  say('| target | parser | executions | read | a second | different answers |');
  say('| --- | --- | ---: | ---: | ---: | ---: |');
  for (const { fuzzer, millis } of rows) {
    const { target, executions, read, outcomes } = fuzzer;
    const rate = millis === 0 ? 0 : Math.round((executions * 1_000) / millis);
    say(`| ${target.name} | ${target.parser} | ${executions} | ${read} | ${rate} | ${outcomes} |`);
  }
  const total = rows.reduce((sum, { fuzzer }) => sum + fuzzer.executions, 0);
  say(`${total} executions in all`);
}

async function report(finding: Finding): Promise<void> {
  const target = targetOf(finding.target);
  const smallest = await shrunk(target, finding);
  const path = writeFinding(smallest);
  say(`FINDING ${smallest.message}`);
  say(`  input: ${smallest.input.toString('hex')}`);
  say(`  replay: npm run fuzz -- --replay ${path}`);
}

async function replay(path: string): Promise<void> {
  const { target, input } = readFinding(path);
  const finding = await findingOf(targetOf(target), input);
  say(finding === undefined ? `${path} is handled now` : `FINDING ${finding.message}`);
  if (finding === undefined) return;
  if (finding.cause instanceof Error) say(finding.cause.stack ?? '');
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const program = new Command('fuzz')
    .description('Gives damaged inputs to every parser of the program until one does something forbidden.')
    .option('--minutes <m>', 'how long, for all targets together', minutes, 1)
    .option('--target <name>', `only this one: ${TARGETS.map(({ name }) => name).join(', ')}`)
    .option('--seed <s>', 'random if omitted', seedFrom)
    .option('--replay <file>', 'only this finding, with its stack')
    .parse();
  const options = program.opts<Options>();
  if (options.replay !== undefined) return replay(options.replay);
  // Most errors are refusals, and stack traces would take most of the time.
  Error.stackTraceLimit = 0;
  const seed = options.seed ?? randomInt(2 ** 31);
  const targets = options.target === undefined ? TARGETS : [targetOf(options.target)];
  say(`seed ${seed}`);
  const watchdog = new Watchdog();
  const rows = targets.map((target): Row => ({
    fuzzer: new Fuzzer(target, seed, watchdog.begins),
    millis: 0,
  }));
  try {
    await takeTurns(rows, options.minutes * MILLIS_PER_MINUTE);
  } catch (error) {
    if (!(error instanceof Finding)) throw error;
    await report(error);
    process.exitCode = 1;
  }
  await watchdog.end();
  announce(rows);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof RangeError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
