/** Runs mutants, each in a process of its own, and reports what caught it. A mutant that did not run was not caught. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Mutant } from './mutant.ts';
import { MutatedCopy } from './mutated-copy.ts';
import { compiled, Sources } from './places.ts';

const run = promisify(execFile);
const VITEST = 'node_modules/vitest/vitest.mjs';
/** Enough for a busy machine. A limit is needed, because a mutant may make a step that never ends. */
const SEED_MILLIS_MAX = 20_000;
const RUN_MILLIS_MIN = 600_000;
/**
 * Most mutants are caught in one to three worlds. V8 spends a third of so short a run on
 * optimising code that is hardly used again, and on collecting a heap that grows in small steps. These flags avoid that;
 * they would slow down a run of many worlds.
 */
const SHORT_RUN = ['--interrupt-budget=1000000', '--min-semi-space-size=16'];

export interface Task {
  readonly id: string;
  readonly seeds: readonly number[];
  /** Instead of seeds: a script of crash points, or '' for all scripts. */
  readonly script?: string | undefined;
}

export interface Fate {
  /** The violation that was found. Undefined if the mutant survived or did not run. */
  readonly caughtBy?: string | undefined;
  readonly seed?: number | undefined;
  /** How many seeds or crash points were run. */
  readonly runs: number;
  /** Processor time of the process that ran them, in seconds. */
  readonly cpuSeconds?: number | undefined;
  /** Why it did not run. */
  readonly failure?: string | undefined;
}

export interface Plan {
  /** Tried one after the other until one catches the mutant. */
  seedsOf(mutant: Mutant): readonly number[];
  /** Run all mutants at all crash points instead. */
  readonly crashPoints: boolean;
}

/** Runs `jobs` mutants at a time and calls `reported` as each ends. */
export async function runMutants(
  mutants: readonly Mutant[],
  { plan, jobs }: { readonly plan: Plan; readonly jobs: number },
  reported: (mutant: Mutant, fate: Fate) => void,
): Promise<void> {
  const sources = Sources.read();
  const waiting = [...mutants];
  const work = async (): Promise<void> => {
    const copy = await MutatedCopy.make();
    try {
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift())
        reported(mutant, await fateOf(mutant, { sources, copy, plan }));
    } finally {
      await copy.remove();
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
}

interface Workplace {
  readonly sources: Sources;
  readonly copy: MutatedCopy;
  readonly plan: Plan;
}

async function fateOf(mutant: Mutant, { sources, copy, plan }: Workplace): Promise<Fate> {
  const { id, edits = [], unitTest } = mutant;
  if (unitTest !== undefined) return testFate(id, unitTest.file);
  const seeds = plan.seedsOf(mutant);
  const script = mutant.script ?? (plan.crashPoints ? '' : undefined);
  const timeout = Math.max(RUN_MILLIS_MIN, seeds.length * SEED_MILLIS_MAX);
  try {
    await copy.change(await compiled(sources.edited(edits)));
    const child = run(process.execPath, [...SHORT_RUN, copy.child], { timeout });
    child.child.stdin?.end(JSON.stringify({ id, seeds, script } satisfies Task));
    return provenFate(JSON.parse((await child).stdout) as Fate);
  } catch (error) {
    const { killed, stderr } = error as { readonly killed?: boolean; readonly stderr?: unknown };
    const reason = /^\w*Error: .*$/m.exec(String(stderr ?? error))?.[0] ?? String(error).split('\n')[0];
    return { runs: 0, failure: killed === true ? `no end within ${timeout / 1_000} s` : reason };
  }
}

/** The error of a mutant that uses a name which is not there any more: it shows no bug, and any test would catch it. */
const MISSING_NAME = /ReferenceError: .* is not defined/;

/** A fate counts as caught only if the mutant is a program. */
function provenFate(fate: Fate): Fate {
  const missing = MISSING_NAME.exec(fate.caughtBy ?? '')?.[0];
  return missing === undefined ? fate : { runs: 0, failure: missing };
}

/** vitest.config.ts makes the edits when it loads the sources for the test. */
async function testFate(id: string, file: string): Promise<Fate> {
  const env = { ...process.env, QUORATE_MUTANT: id, NO_COLOR: '1' };
  try {
    await run(process.execPath, [VITEST, 'run', `test/${file}`], { env, timeout: RUN_MILLIS_MIN });
    return { runs: 1 };
  } catch (error) {
    const stderr = String((error as { readonly stderr?: unknown }).stderr);
    const failed = / FAIL {2}(.*)$/m.exec(stderr)?.[1];
    const isLoaded = failed?.includes(' > ') === true;
    if (!isLoaded) return { runs: 0, failure: failed ?? String(error) };
    const missing = MISSING_NAME.exec(stderr)?.[0];
    return provenFate({ runs: 1, caughtBy: missing ?? failed });
  }
}
