/**
 * Repeats a script with a crash at its first boundary, then at its second, and so on, until a run ends before its
 * crash.
 */
import type { Hash32 } from '../../../src/partition/hash.ts';
import type { Seams } from '../node-world.ts';
import { type Say, type Story, wordsOfEnd } from '../story.ts';
import { type Crash, isVariantAt, nameOf, type Point, type Variant } from './crash.ts';

/** A script and the cluster that plays it. */
export interface CrashScript {
  readonly name: string;
  /** The variants of a crash that make a difference to it. */
  readonly variants: readonly Variant[];
  /** The number of crashes that `npm run test:long` has time for. */
  readonly sample: number;
  begin(init: Start): Play;
}

export interface Start {
  readonly hash: Hash32;
  /** The crash at one boundary; undefined: no crash. */
  readonly crash?: Crash | undefined;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
  /** The seed of the small differences in durations. */
  readonly seed?: number | undefined;
}

/** One run of the script. */
export interface Play {
  /** The boundaries up to the crash. */
  readonly points: readonly Point[];
  readonly chunksInstalled: number;
  readonly story: Story;
  /** Throws a Violation. */
  run(): Promise<void>;
}

export interface EnumerationInit {
  readonly script: CrashScript;
  readonly hash: Hash32;
  readonly seams?: Seams | undefined;
  readonly seed?: number | undefined;
  /** Try about this many of the crashes, evenly spread; all if absent. */
  readonly sample?: number | undefined;
}

export interface PointRun {
  readonly points: readonly Point[];
  readonly chunksInstalled: number;
  readonly millis: number;
  readonly violation: string | undefined;
}

export interface Enumeration {
  /** The boundaries of the run without a crash. */
  readonly points: readonly Point[];
  readonly chunksInstalled: number;
  readonly runs: number;
  /** The longest run, in simulated milliseconds. */
  readonly millisMax: number;
  /** The first failure; undefined if all checks passed. */
  readonly failure: Failure | undefined;
}

export interface Failure {
  /** Undefined: it failed without a crash. */
  readonly crash: Crash | undefined;
  readonly violation: string;
  /** The command that repeats it with output. */
  readonly replay: string;
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Most of the time of a start goes into the placement of partitions, which hashes the same texts each time. */
function remembering(hash: Hash32): Hash32 {
  const known = new Map<string, number>();
  return (text) => {
    const result = known.get(text) ?? hash(text);
    known.set(text, result);
    return result;
  };
}

export async function runPoint({
  script,
  ...start
}: Start & { readonly script: CrashScript }): Promise<PointRun> {
  const play = script.begin(start);
  let violation: string | undefined;
  try {
    await play.run();
  } catch (error) {
    violation = wordsOfEnd(error);
  }
  const { points, chunksInstalled, story } = play;
  return { points, chunksInstalled, millis: story.elapsed, violation };
}

/** Stops at the first violation. */
export async function enumerateCrashes({ sample, ...asked }: EnumerationInit): Promise<Enumeration> {
  const init = { ...asked, hash: remembering(asked.hash) };
  const reference = await runPoint(init);
  const { points, chunksInstalled } = reference;
  let runs = 1;
  let millisMax = reference.millis;
  const result = (failure: Failure | undefined): Enumeration => ({
    points,
    chunksInstalled,
    runs,
    millisMax,
    failure,
  });
  if (reference.violation !== undefined) {
    return result({ crash: undefined, violation: reference.violation, replay: replayOf(init, undefined) });
  }
  const crashes = points.flatMap((point, i) =>
    init.script.variants
      .filter((variant) => isVariantAt(point, variant))
      .map((variant) => ({ ...variant, at: i + 1 })),
  );
  for (const crash of sampleOf(crashes, sample, init.seed)) {
    const run = await runPoint({ ...init, crash });
    runs += 1;
    millisMax = Math.max(millisMax, run.millis);
    const violation = run.violation ?? differenceAt(crash.at, points, run.points);
    if (violation === undefined) continue;
    return result({ crash, violation, replay: replayOf(init, crash) });
  }
  return result(undefined);
}

/**
 * Evenly spread, with a start that depends on the seed. A point has a few variants, and the start varies which one is
 * taken.
 */
function sampleOf(crashes: readonly Crash[], count = crashes.length, seed = 0): readonly Crash[] {
  const fraction = count / crashes.length;
  return crashes.filter((_, i) => ((i + seed) * GOLDEN_RATIO) % 1 < fraction);
}

/** A run that differs from the first one before its crash has not crashed where it should. */
function differenceAt(at: number, points: readonly Point[], others: readonly Point[]): string | undefined {
  const reported = (some: readonly Point[]): string => JSON.stringify(some[at - 1]);
  return reported(points) === reported(others)
    ? undefined
    : `boundary ${at} is ${reported(others)}, not ${reported(points)}`;
}

function replayOf({ script, seed }: EnumerationInit, crash: Crash | undefined): string {
  const timing = seed === undefined ? '' : ` --seed ${seed}`;
  const options = crash === undefined ? '' : ` --at ${crash.at} --variant ${nameOf(crash)}`;
  return `npm run sim -- --crash-points ${script.name}${timing}${options} --trace`;
}
