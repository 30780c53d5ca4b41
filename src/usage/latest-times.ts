/** How long the answers of the last seconds took, from counts that only grow: the difference of two readings. It reads no clock. */
import type { LatestTimes as Times } from '../api/monitoring.ts';
import { quantileMillis } from './recent-figures.ts';

/** Readings are taken once a second or so; one more than the seconds that are told of. */
const READINGS_MAX = 11;
const SPAN_MILLIS_MAX = 15_000;

interface Reading {
  readonly atMillis: number;
  readonly times: Float64Array;
}

export class LatestTimes {
  /** Oldest first. */
  #readings: Reading[] = [];

  /** @param times how many answers took how long since the node started, by step @param atMillis on the monotonic clock */
  seen(times: Float64Array, atMillis: number): Times | null {
    const isRecent = (each: Reading): boolean => atMillis - each.atMillis <= SPAN_MILLIS_MAX;
    this.#readings = [...this.#readings.filter(isRecent), { atMillis, times }].slice(-READINGS_MAX);
    const [oldest] = this.#readings;
    if (oldest === undefined) return null;
    const grown = times.map((count, step) => count - (oldest.times[step] ?? 0));
    const timed = grown.reduce((sum, count) => sum + count, 0);
    if (timed === 0) return null;
    const seconds = Math.ceil((atMillis - oldest.atMillis) / 1_000);
    return { seconds, timed, p50Millis: quantileMillis(grown, 0.5), p99Millis: quantileMillis(grown, 0.99) };
  }
}
