/** The format of `results.json`: the results of a run, with everything needed to judge and to repeat it. */
import { execFileSync } from 'node:child_process';
import { arch, cpus, release, totalmem, type } from 'node:os';
import type { ThingUnderLoad } from '../peers/thing-under-load.ts';
import type { Cell, Timing } from '../plan.ts';
import type { RoundSample, RoundsResult } from '../rounds.ts';
import { type CellSummary, summarize } from '../summary.ts';

export interface Machine {
  readonly cpuModel: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
}

export interface BenchResults {
  /** Increased when a field changes its meaning. */
  readonly format: 1;
  readonly startedAt: string;
  /** Commit of the sources; absent outside a repository. */
  readonly commit?: string;
  /** One-minute load average before the run. */
  readonly loadAverageBefore: number;
  readonly machine: Machine;
  readonly options: Timing & { readonly seed: number };
  readonly things: readonly Pick<ThingUnderLoad, 'id' | 'name' | 'promise'>[];
  readonly notes: readonly string[];
  readonly summaries: readonly CellSummary[];
  readonly samples: readonly RoundSample[];
}

function thisMachine(): Machine {
  const processors = cpus();
  return {
    cpuModel: processors[0]?.model.trim() ?? 'unknown',
    cpus: processors.length,
    memoryBytes: totalmem(),
    system: `${type()} ${release()} ${arch()}`,
    node: process.versions.node,
  };
}

function thisCommit(): string | undefined {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=12'];
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

export function resultsOf(
  run: {
    readonly startedAt: Date;
    readonly loadAverageBefore: number;
    readonly timing: Timing;
    readonly seed: number;
  },
  cells: readonly Cell[],
  { samples, notes }: RoundsResult,
): BenchResults {
  const commit = thisCommit();
  const things = [...new Set(cells.map(({ thing }) => thing))];
  return {
    format: 1,
    startedAt: run.startedAt.toISOString(),
    ...(commit !== undefined && { commit }),
    loadAverageBefore: run.loadAverageBefore,
    machine: thisMachine(),
    options: { ...run.timing, seed: run.seed },
    things: things.map(({ id, name, promise }) => ({ id, name, promise })),
    notes,
    summaries: summarize(cells, samples),
    samples,
  };
}
