/**
 * Builds the data of the charts: one point a minute from the usage history of all nodes, followed by one point a second
 * from the figures that this page received itself. Also sums the minutes of a history, and computes the denied fraction
 * now and before. Pure.
 */
import { USAGE_OUTCOMES, type UsageOutcome, type UsageReport } from '../api/usage.ts';
import { RATE_SERIES, type Samples, TIME_SERIES } from './feed.ts';

const MINUTE_SECONDS = 60;
/** Ranges up to this length also show the points by the second. */
export const LIVE_MINUTES = 5;

type Column = readonly (number | null)[];

/** Points of the charts, as columns of equal length. */
export interface Drawn {
  /** Seconds since 1970. */
  readonly seconds: readonly number[];
  /** Answers per second, in the order of `RATE_SERIES`. */
  readonly rates: readonly Column[];
  /** Milliseconds, in the order of `TIME_SERIES`. */
  readonly times: readonly Column[];
}

/** A usage history, and when it was read, in seconds since 1970 by the clock of a node. */
export interface Reported {
  readonly history: UsageReport['history'];
  readonly second: number;
}

/**
 * Joins the history with the samples of the last minutes.
 *
 * @param reported covers at least `minutes`
 */
export function drawnOf(reported: Reported | undefined, samples: Samples, minutes: number): Drawn {
  const isLive = minutes <= LIVE_MINUTES;
  const untilSecond = isLive ? samples.seconds[0] : undefined;
  const past =
    reported === undefined
      ? NOTHING
      : pastOf(reported.history, { minutes, nowSecond: reported.second, untilSecond });
  if (!isLive) return past;
  const from = (samples.seconds.at(-1) ?? 0) - minutes * MINUTE_SECONDS;
  const first = samples.seconds.findIndex((second) => second >= from);
  const cut = (column: Column): Column => (first < 0 ? [] : column.slice(first));
  return {
    seconds: [...past.seconds, ...(first < 0 ? [] : samples.seconds.slice(first))],
    rates: RATE_SERIES.map((_, i) => [...(past.rates[i] ?? []), ...cut(samples.rates[i] ?? [])]),
    times: TIME_SERIES.map((_, i) => [...(past.times[i] ?? []), ...cut(samples.times[i] ?? [])]),
  };
}

interface PastOptions {
  readonly minutes: number;
  /** When the history was read. */
  readonly nowSecond: number;
  readonly untilSecond?: number | undefined;
}

const NOTHING: Drawn = {
  seconds: [],
  rates: RATE_SERIES.map(() => []),
  times: TIME_SERIES.map(() => []),
};

/** One point for each minute, in its middle. The current minute is left out for its first half: it says too little. */
function pastOf(
  history: UsageReport['history'],
  { minutes, nowSecond, untilSecond = Infinity }: PastOptions,
): Drawn {
  const { fromMillis, allowed, p99Millis } = history;
  const start = (i: number): number => fromMillis / 1_000 + i * MINUTE_SECONDS;
  const known = (i: number): number => Math.min(MINUTE_SECONDS, nowSecond - start(i));
  const middle = (i: number): number => start(i) + known(i) / 2;
  const all = allowed.map((_, i) => i).slice(-minutes);
  const drawn = all.filter((i) => known(i) >= MINUTE_SECONDS / 2 && middle(i) < untilSecond);
  return {
    seconds: drawn.map(middle),
    rates: RATE_SERIES.map((outcome) => drawn.map((i) => (history[outcome][i] ?? 0) / known(i))),
    times: TIME_SERIES.map((name) =>
      drawn.map((i) => (name === 'p99Millis' ? (p99Millis?.[i] ?? null) : null)),
    ),
  };
}

/** Indexes of the columns with a value above 0. The legend names only these. */
export function shownColumns(columns: readonly Column[]): number[] {
  return columns.flatMap((column, i) => (column.some((value) => value !== null && value > 0) ? [i] : []));
}

type History = UsageReport['history'];
/** Answers by outcome. */
type Sums = Readonly<Record<UsageOutcome, number>>;

/** Sums of the last minutes and of the minutes before them. */
export interface Compared {
  readonly now: Sums;
  /** Sums of as many minutes before; undefined if nodes do not keep them. */
  readonly before: Sums | undefined;
}

/**
 * Sums the last `minutes` and, if the history is long enough, as many before them.
 *
 * @param history covers `minutes`, or twice as many
 */
export function compared(history: History, minutes: number): Compared {
  const { length } = history.allowed;
  return {
    now: sumsOf(history, Math.max(0, length - minutes), length),
    before: length < 2 * minutes ? undefined : sumsOf(history, length - 2 * minutes, length - minutes),
  };
}

function sumsOf(history: History, from: number, to: number): Sums {
  const sums = USAGE_OUTCOMES.map((outcome) => [
    outcome,
    history[outcome].slice(from, to).reduce((sum, count) => sum + count, 0),
  ]);
  return Object.fromEntries(sums) as Record<UsageOutcome, number>;
}

/** Denied fraction of all decisions; undefined if there were none. */
export function deniedFraction({ allowed, denied }: Pick<Sums, 'allowed' | 'denied'>): number | undefined {
  const decided = allowed + denied;
  return decided === 0 ? undefined : denied / decided;
}

/** Sorts rules by denials, then by the denials a shadow rule would have made, then by grants. */
export function byDenials(rules: UsageReport['rules']): UsageReport['rules'] {
  return rules.toSorted((a, b) => b.denied - a.denied || b.wouldDeny - a.wouldDeny || b.allowed - a.allowed);
}
