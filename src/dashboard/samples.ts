/** The figures of the last minutes, a row for each second, as charts take them: a column for each series. */
import type { LiveFigures } from '../api/monitoring.ts';

/** Seconds that are kept. */
export const SAMPLES_MAX = 300;

/** What is drawn, in order of the columns behind the time. */
export const RATE_SERIES = ['allowed', 'denied', 'unavailable', 'degraded'] as const;
export const TIME_SERIES = ['p50Millis', 'p99Millis'] as const;

type Column = readonly (number | null)[];

/** Times in seconds since 1970, and null where nothing is known. */
export interface Samples {
  readonly seconds: readonly number[];
  readonly rates: readonly Column[];
  readonly times: readonly Column[];
}

export const NO_SAMPLES: Samples = {
  seconds: [],
  rates: RATE_SERIES.map(() => []),
  times: TIME_SERIES.map(() => []),
};

function kept<T>(column: readonly T[], value: T): T[] {
  return [...column, value].slice(-SAMPLES_MAX);
}

/** With the newest behind the others, and the oldest dropped. A clock that stepped back begins anew. */
export function withSample(samples: Samples, figures: LiveFigures): Samples {
  const { atMillis, rates, clusterTimes: times } = figures;
  const second = atMillis / 1_000;
  const last = samples.seconds.at(-1);
  if (last !== undefined && second <= last) return withSample(NO_SAMPLES, figures);
  return {
    seconds: kept(samples.seconds, second),
    rates: samples.rates.map((column, i) => {
      const name = RATE_SERIES[i];
      return kept(column, name === undefined ? null : (rates?.perSecond[name] ?? null));
    }),
    times: samples.times.map((column, i) => {
      const name = TIME_SERIES[i];
      return kept(column, name === undefined ? null : (times?.[name] ?? null));
    }),
  };
}
