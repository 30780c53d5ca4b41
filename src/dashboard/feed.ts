/**
 * The data that the page shows: the latest reports of its node, the figures of the last minutes for the charts, and
 * whether the connection still works. Plain data.
 */
import type { LiveFigures, Fault, LiveCluster } from '../api/monitoring.ts';

/** Samples kept, one a second. */
export const SAMPLES_MAX = 300;

/** Series of the rate chart, in the order of its columns. */
export const RATE_SERIES = ['allowed', 'denied', 'unavailable', 'degraded'] as const;
/** Series of the latency chart, in the order of its columns. */
export const TIME_SERIES = ['p50Millis', 'p99Millis'] as const;

type Column = readonly (number | null)[];

/**
 * The figures of the last minutes: one column for each series, one value for each second. `seconds` counts from 1970,
 * and null marks an unknown value.
 */
export interface Samples {
  readonly seconds: readonly number[];
  readonly rates: readonly Column[];
  readonly times: readonly Column[];
}

/** No sample yet. */
export const NO_SAMPLES: Samples = {
  seconds: [],
  rates: RATE_SERIES.map(() => []),
  times: TIME_SERIES.map(() => []),
};

function kept<T>(column: readonly T[], value: T): T[] {
  return [...column, value].slice(-SAMPLES_MAX);
}

/** Appends the newest figures and drops the oldest. If the clock stepped back, all older samples are dropped. */
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

/**
 * State of the connection to the node.
 *
 * - `connecting`: nothing has arrived yet
 * - `live`: reports arrive every second
 * - `signIn`: the node asks for a token, or refuses the one it got
 * - `lost`: reports stopped; the page keeps reconnecting
 */
export type FeedStatus = 'connecting' | 'live' | 'signIn' | 'lost';

/** Everything the page has received from its node. */
export interface Feed {
  readonly status: FeedStatus;
  /** Why the feed is not live. */
  readonly reason: string;
  /** The feed is not live because the node refuses it, not because the node is silent. */
  readonly isAnswered: boolean;
  /** When the last report arrived, by the clock of the browser; 0 if none did. */
  readonly heardMillis: number;
  readonly cluster: LiveCluster | undefined;
  readonly figures: LiveFigures | undefined;
  /** Newest first. */
  readonly faults: readonly Fault[];
  readonly samples: Samples;
}

/** The feed before the first report. */
export const NO_FEED: Feed = {
  status: 'connecting',
  reason: '',
  isAnswered: false,
  heardMillis: 0,
  cluster: undefined,
  figures: undefined,
  faults: [],
  samples: NO_SAMPLES,
};
