/** `npm run sim -- --crash-points`: runs all crashes of the scripts, or prints the steps of one of them. */
import { loadHash32 } from '../../../src/partition/hash.ts';
import type { Seams } from '../node-world.ts';
import { scriptNamed, SCRIPTS } from './all.ts';
import { variantNamed } from './crash.ts';
import { type Failure, enumerateCrashes, runPoint } from './enumerate.ts';

export interface CrashPointsOptions {
  /** All scripts if absent. */
  readonly script?: string | undefined;
  /** The boundary to crash at. It needs `script` and `variant`. No crash if absent. */
  readonly at?: number | undefined;
  readonly variant?: string | undefined;
  readonly trace?: boolean | undefined;
  readonly seed?: number | undefined;
}

/** Prints what it finds. Returns whether all checks passed. */
export async function crashPoints(
  options: CrashPointsOptions,
  print: (line: string) => void,
): Promise<boolean> {
  const hash = await loadHash32();
  const { seed } = options;
  const scripts = options.script === undefined ? SCRIPTS : [scriptNamed(options.script)];
  let isKept = true;
  for (const script of scripts) {
    if (options.at !== undefined || options.trace === true) {
      const crash =
        options.at === undefined
          ? undefined
          : { at: options.at, ...variantNamed(options.variant ?? 'one-lost-once', script.variants) };
      const say = options.trace === true ? print : undefined;
      const { points, violation } = await runPoint({ script, hash, seed, crash, say });
      // The list of boundaries ends with the crash.
      const isMissed = crash !== undefined && violation === undefined && crash.at !== points.length;
      print(`${script.name}: ${violation ?? outcomeOf(crash?.at, points.length)}`);
      if (violation !== undefined || isMissed) isKept = false;
      continue;
    }
    const { points, runs, millisMax, failure } = await enumerateCrashes({ script, hash, seed });
    print(`${script.name}: ${points.length} boundaries, ${runs} runs of at most ${Math.ceil(millisMax)} ms`);
    if (failure === undefined) continue;
    isKept = false;
    print(`  ${failure.violation}\n  replay: ${failure.replay}`);
  }
  return isKept;
}

function outcomeOf(at: number | undefined, boundaries: number): string {
  if (at === undefined) return `everything held; ${boundaries} boundaries, no crash`;
  if (at !== boundaries) return `there is no boundary ${at}: the run has 1 to ${boundaries}`;
  return `everything held after the crash at boundary ${at}`;
}

export interface FirstCrash {
  readonly runs: number;
  readonly script?: string;
  readonly crash?: Failure['crash'];
  readonly violation?: string;
}

/** Runs the scripts, or one of them, until a check fails. Used by mutants. */
export async function firstCrash(seams: Seams | undefined, name?: string): Promise<FirstCrash> {
  const hash = await loadHash32();
  let runs = 0;
  for (const script of name === undefined ? SCRIPTS : [scriptNamed(name)]) {
    const found = await enumerateCrashes({ script, hash, seams });
    runs += found.runs;
    if (found.failure === undefined) continue;
    const { crash, violation } = found.failure;
    return { runs, script: script.name, crash, violation: violation.split('\n')[0] ?? '' };
  }
  return { runs };
}
