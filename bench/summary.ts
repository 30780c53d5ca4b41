/** Summarises all rounds of each cell: medians, ranges, and the ratios to the yardstick and to Quorate. */
import type { Cell } from './plan.ts';
import type { GrantPromise } from './peers/thing-under-load.ts';
import type { RoundSample } from './rounds.ts';
import { ratiosPerRound, type Spread, spreadOf } from './statistics.ts';

export interface CellSummary {
  readonly cell: string;
  readonly thing: string;
  readonly thingName: string;
  readonly promise: GrantPromise;
  readonly setup: string;
  readonly setupTitle: string;
  readonly workload: string;
  readonly rounds: number;
  readonly decisionsPerSecond: Spread;
  readonly p50Millis: Spread | undefined;
  readonly p99Millis: Spread | undefined;
  readonly p999Millis: Spread | undefined;
  readonly maxMillis: Spread | undefined;
  readonly cpuSecondsPerMillion: Spread | undefined;
  readonly loadCpuSecondsPerMillion: Spread | undefined;
  readonly syncsPerSecond: Spread | undefined;
  readonly entriesPerSecond: Spread | undefined;
  readonly residentBytes: Spread | undefined;
  /** Decisions per second of this cell divided by the yardstick's grants per second in the same setup. */
  readonly timesBare: Spread | undefined;
  /** Decisions per second of Quorate divided by those of this cell, for the same setup and workload. */
  readonly quorateTimes: Spread | undefined;
  /** Fraction of answers, 0 to 1, that were errors or that the workload should not get. */
  readonly unexpectedFraction: number;
}

type Rates = ReadonlyMap<number, number>;

function ratesOf(samples: readonly RoundSample[], cell: string): Rates {
  return new Map(
    samples.filter((sample) => sample.cell === cell).map((each) => [each.round, each.decisionsPerSecond]),
  );
}

function summaryOf(cell: Cell, samples: readonly RoundSample[]): CellSummary | undefined {
  const own = samples.filter((sample) => sample.cell === cell.id);
  const rates = ratesOf(samples, cell.id);
  const decisionsPerSecond = spreadOf([...rates.values()]);
  if (decisionsPerSecond === undefined) return undefined;
  const { thing, setup, workload } = cell;
  const of = (read: (sample: RoundSample) => number | undefined): Spread | undefined =>
    spreadOf(own.map(read));
  const sum = (read: (sample: RoundSample) => number): number =>
    own.reduce((total, sample) => total + read(sample), 0);
  const answers = sum(({ grants, denials, errors }) => grants + denials + errors);
  return {
    cell: cell.id,
    thing: thing.id,
    thingName: thing.name,
    promise: thing.promise,
    setup: setup.id,
    setupTitle: setup.title,
    workload,
    rounds: own.length,
    decisionsPerSecond,
    p50Millis: of((sample) => sample.p50Millis),
    p99Millis: of((sample) => sample.p99Millis),
    p999Millis: of((sample) => sample.p999Millis),
    maxMillis: of((sample) => sample.maxMillis),
    cpuSecondsPerMillion: of((sample) => sample.cpuSecondsPerMillion),
    loadCpuSecondsPerMillion: of((sample) => sample.loadCpuSecondsPerMillion),
    syncsPerSecond: of((sample) => sample.syncsPerSecond),
    entriesPerSecond: of((sample) => sample.entriesPerSecond),
    residentBytes: of((sample) => sample.residentBytes),
    timesBare: ratiosPerRound(rates, ratesOf(samples, `${setup.bare}/${setup.id}/grants`)),
    quorateTimes: ratiosPerRound(ratesOf(samples, `quorate/${setup.id}/${workload}`), rates),
    unexpectedFraction: answers === 0 ? 0 : sum(({ unexpected }) => unexpected) / answers,
  };
}

/** Summarises the samples in the order of the cells, without cells that were never measured. */
export function summarize(cells: readonly Cell[], samples: readonly RoundSample[]): CellSummary[] {
  return cells.flatMap((cell) => summaryOf(cell, samples) ?? []);
}

/** Summaries of the same setup and workload, which may be compared. */
export interface Comparison {
  readonly title: string;
  readonly rows: readonly CellSummary[];
}

export function comparisonsOf(summaries: readonly CellSummary[]): Comparison[] {
  const byTitle = new Map<string, CellSummary[]>();
  for (const summary of summaries) {
    const title = `${summary.workload}: ${summary.setupTitle}`;
    byTitle.set(title, [...(byTitle.get(title) ?? []), summary]);
  }
  return [...byTitle].map(([title, rows]) => ({ title, rows }));
}
