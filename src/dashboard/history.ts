/** What the charts draw: the minutes that all nodes kept, and behind them the seconds that this page saw itself. Pure. */
import type { UsageReport } from '../api/usage.ts';
import { RATE_SERIES, type Samples, TIME_SERIES } from './samples.ts';

const MINUTE_SECONDS = 60;
/** The range that is drawn by the second, as far as this page was open. */
export const LIVE_MINUTES = 5;

type Column = readonly (number | null)[];

export interface Drawn {
  /** Since 1970. */
  readonly seconds: readonly number[];
  /** Per second, in the order of `RATE_SERIES`. */
  readonly rates: readonly Column[];
  /** In milliseconds, in the order of `TIME_SERIES`. */
  readonly times: readonly Column[];
}

/** What was counted, and when that was told, in seconds since 1970 by the clock of a node. */
export interface Told {
  readonly history: UsageReport['history'];
  readonly second: number;
}

/** @param told of `minutes`, or of more */
export function drawnOf(told: Told | undefined, samples: Samples, minutes: number): Drawn {
  const isLive = minutes <= LIVE_MINUTES;
  const untilSecond = isLive ? samples.seconds[0] : undefined;
  const past =
    told === undefined ? NOTHING : pastOf(told.history, { minutes, nowSecond: told.second, untilSecond });
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
  /** When the history was told. */
  readonly nowSecond: number;
  readonly untilSecond?: number | undefined;
}

const NOTHING: Drawn = {
  seconds: [],
  rates: RATE_SERIES.map(() => []),
  times: TIME_SERIES.map(() => []),
};

/** Minutes, each in its middle. Of the one under way, not much is known before half of it is over. @param nowSecond since 1970 */
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

/** The places of the columns that show something: a legend names no other. */
export function shownColumns(columns: readonly Column[]): number[] {
  return columns.flatMap((column, i) => (column.some((value) => value !== null && value > 0) ? [i] : []));
}
