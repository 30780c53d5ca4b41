/** Repeats a script with a crash at its first boundary, its second, and so on until it ends before the next. */
import type { Hash32 } from '../../../src/partition/hash.ts';
import type { Seams } from '../node-world.ts';
import { type Say, type Story, wordsOfEnd } from '../story.ts';
import { type Crash, isVariantAt, nameOf, type Point, type Variant } from './crash.ts';

/** What is repeated: a script, with whom it is played. */
export interface CrashScript {
  readonly name: string;
  /** The crashes that make a difference to it. */
  readonly variants: readonly Variant[];
  /** How many crashes `npm run test:long` has time for. */
  readonly sample: number;
  begin(init: Start): Play;
}

export interface Start {
  readonly hash: Hash32;
  /** At one boundary, or at none. */
  readonly crash?: Crash | undefined;
  readonly seams?: Seams | undefined;
  readonly say?: Say | undefined;
  /** Of the small differences in how long things take. */
  readonly seed?: number | undefined;
}

/** One run of it. */
export interface Play {
  /** Up to the crash. */
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
  /** About so many of the crashes, spread evenly; all of them if absent. */
  readonly sample?: number | undefined;
}

export interface PointRun {
  readonly points: readonly Point[];
  readonly chunksInstalled: number;
  readonly millis: number;
  readonly violation: string | undefined;
}

export interface Enumeration {
  /** Of the run without a crash. */
  readonly points: readonly Point[];
  readonly chunksInstalled: number;
  readonly runs: number;
  /** The longest run, in simulated milliseconds. */
  readonly millisMax: number;
  /** The first one; undefined if everything holds. */
  readonly failure: Failure | undefined;
}

export interface Failure {
  /** Undefined: without any crash. */
  readonly crash: Crash | undefined;
  readonly violation: string;
  /** The command that tells it again. */
  readonly replay: string;
}

const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

/** Most of a start is the placement of partitions, by the same texts each time. */
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

/** Spread evenly, from a first one that the seed says. A point has a few variants: it is not always the same one. */
function sampleOf(crashes: readonly Crash[], count = crashes.length, seed = 0): readonly Crash[] {
  const share = count / crashes.length;
  return crashes.filter((_, i) => ((i + seed) * GOLDEN_RATIO) % 1 < share);
}

/** A run that is not equal to the first one up to its crash has not crashed where it was meant to. */
function differenceAt(at: number, points: readonly Point[], others: readonly Point[]): string | undefined {
  const told = (some: readonly Point[]): string => JSON.stringify(some[at - 1]);
  return told(points) === told(others) ? undefined : `boundary ${at} is ${told(others)}, not ${told(points)}`;
}

function replayOf({ script, seed }: EnumerationInit, crash: Crash | undefined): string {
  const timing = seed === undefined ? '' : ` --seed ${seed}`;
  const options = crash === undefined ? '' : ` --at ${crash.at} --variant ${nameOf(crash)}`;
  return `npm run sim -- --crash-points ${script.name}${timing}${options} --trace`;
}
