/** Tells how long the answers of the last seconds took. It compares two readings of counters that only grow. */
import type { LatestTimes as Times } from '../api/monitoring.ts';
import { countIn, LATE, quantileMillis } from './time-steps.ts';

/** Readings are taken about once a second; this is one more than the seconds that are reported. */
const READINGS_MAX = 11;
const SPAN_MILLIS_MAX = 15_000;

interface Reading {
  readonly atMillis: number;
  readonly times: Float64Array;
}

/** The recent readings of one node's counters. */
export class LatestTimes {
  /** Oldest first. */
  #readings: Reading[] = [];

  /**
   * Takes a reading and returns the quantiles since the oldest one. Null if nothing was timed.
   *
   * @param times number of answers since the node started, by step
   * @param atMillis on the monotonic clock
   */
  seen(times: Float64Array, atMillis: number): Times | null {
    const counts = this.grown(times, atMillis);
    const [oldest] = this.#readings;
    return oldest === undefined ? null : timesOf(counts, Math.ceil((atMillis - oldest.atMillis) / 1_000));
  }

  /** Like `seen`, but returns the counts by step. */
  grown(times: Float64Array, atMillis: number): number[] {
    const isRecent = (each: Reading): boolean => atMillis - each.atMillis <= SPAN_MILLIS_MAX;
    this.#readings = [...this.#readings.filter(isRecent), { atMillis, times }].slice(-READINGS_MAX);
    const [oldest] = this.#readings;
    return Array.from(times, (count, step) => count - (oldest?.times[step] ?? 0));
  }
}

/** Quantiles of counts; null if nothing was timed. @param counts by step @param seconds that they cover, at most */
export function timesOf(counts: readonly number[], seconds: number): Times | null {
  const timed = countIn(counts);
  if (timed === 0) return null;
  return { seconds, timed, p50Millis: quantileMillis(counts, 0.5), p99Millis: quantileMillis(counts, LATE) };
}

/** The sum of several counts, step by step. */
export function sumOfCounts(all: readonly (readonly number[])[]): number[] {
  const length = Math.max(0, ...all.map((counts) => counts.length));
  return Array.from({ length }, (_, step) => all.reduce((sum, counts) => sum + (counts[step] ?? 0), 0));
}
