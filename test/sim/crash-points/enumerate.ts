/** Repeats a script with a crash at its first boundary, its second, and so on until it ends before the next. */
import type { Hash32 } from '../../../src/partition/hash.ts';
import type { Seams } from '../node-world.ts';
import { type Say, Violation } from '../story.ts';
import { Cluster } from './cluster.ts';
import { type Crash, nameOf, type Point, variantsAt } from './crash.ts';
import type { Script } from './scripts.ts';

export interface EnumerationInit {
  readonly script: Script;
  readonly hash: Hash32;
  readonly seams?: Seams | undefined;
  readonly seed?: number | undefined;
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

/** Most of a start is the placement of partitions, by the same texts each time. */
function remembering(hash: Hash32): Hash32 {
  const known = new Map<string, number>();
  return (text) => {
    const result = known.get(text) ?? hash(text);
    known.set(text, result);
    return result;
  };
}

export async function runPoint(
  init: EnumerationInit & { readonly crash?: Crash | undefined; readonly say?: Say | undefined },
): Promise<PointRun> {
  const cluster = new Cluster(init);
  let violation: string | undefined;
  try {
    await cluster.run();
  } catch (error) {
    if (error instanceof Violation) violation = error.message;
    else violation = error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  const { points, chunksInstalled, story } = cluster;
  return { points, chunksInstalled, millis: story.elapsed, violation };
}

/** Stops at the first violation. */
export async function enumerateCrashes(asked: EnumerationInit): Promise<Enumeration> {
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
  for (const [i, point] of points.entries()) {
    for (const variant of variantsAt(point)) {
      const crash = { ...variant, at: i + 1 };
      const run = await runPoint({ ...init, crash });
      runs += 1;
      millisMax = Math.max(millisMax, run.millis);
      const violation = run.violation ?? differenceAt(crash.at, points, run.points);
      if (violation === undefined) continue;
      return result({ crash, violation, replay: replayOf(init, crash) });
    }
  }
  return result(undefined);
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
