/** The results of a run as they are kept: with what is needed to judge them, and to run them again. */
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
  /** Raised when a field gets another meaning. */
  readonly format: 1;
  readonly startedAt: string;
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

export function resultsOf(
  run: { readonly startedAt: Date; readonly timing: Timing; readonly seed: number },
  cells: readonly Cell[],
  { samples, notes }: RoundsResult,
): BenchResults {
  const things = [...new Set(cells.map(({ thing }) => thing))];
  return {
    format: 1,
    startedAt: run.startedAt.toISOString(),
    machine: thisMachine(),
    options: { ...run.timing, seed: run.seed },
    things: things.map(({ id, name, promise }) => ({ id, name, promise })),
    notes,
    summaries: summarize(cells, samples),
    samples,
  };
}
