/**
 * Answer times: of all answers by step, of the last seconds, and by minute for a day. Times are counted in exponential
 * steps of a quarter of a doubling. Counts of several nodes can be added; a
 * quantile of the sum is that of all answers, too high by a fifth at most.
 */
import type { LatestTimes as Times } from '../api/monitoring.ts';
import { USAGE_MINUTES_MAX } from '../api/usage.ts';

/** End of the first step. */
const SHORTEST_MILLIS = 0.125;
/** Each step is longer by 2^(1/4), so a quantile is too high by that factor at most. */
const STEPS_PER_DOUBLING = 4;
/** Number of steps. The last one holds everything from 8 s on. */
export const TIME_STEPS = 16 * STEPS_PER_DOUBLING + 1;
/** The quantile that is reported: the 99th percentile. */
export const LATE = 0.99;

type Counts = Uint32Array | Float64Array | readonly number[];

/** The step of a time. */
export function stepOf(millis: number): number {
  const step = Math.ceil(Math.log2(Math.max(millis, SHORTEST_MILLIS) / SHORTEST_MILLIS) * STEPS_PER_DOUBLING);
  return Math.min(step, TIME_STEPS - 1);
}

/** The end of a step in milliseconds. */
export function millisOfStep(step: number): number {
  return SHORTEST_MILLIS * 2 ** (step / STEPS_PER_DOUBLING);
}

/** The sum of all counts. */
function countIn(counts: Counts): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

/**
 * The step that contains a quantile; -1 if nothing was counted. @param counts by step @param part the quantile, 0
 * to 1
 */
function quantileStep(counts: Counts, part: number): number {
  const total = countIn(counts);
  if (total === 0) return -1;
  let seen = 0;
  return counts.findIndex((count) => (seen += count) >= part * total);
}

/** The end of that step in milliseconds; 0 if nothing was counted. */
export function quantileMillis(counts: Counts, part: number): number {
  const step = quantileStep(counts, part);
  return step < 0 ? 0 : millisOfStep(step);
}

/** Readings are taken about once a second; this is one more than the seconds that are reported. */
const READINGS_MAX = 11;
const SPAN_MILLIS_MAX = 15_000;

interface Reading {
  readonly atMillis: number;
  readonly times: Float64Array;
}

/** How long the answers of the last seconds took: compares two readings of one node's counters, which only grow. */
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

/** A minute in which nothing was timed; other minutes are stored as their step + 1. */
const NOTHING = 0;

/**
 * The 99th percentile of one node's answer times, by minute, for a day. A finished minute is kept as one step; only
 * the current minute has counts. Memory is fixed.
 */
export class MinuteTimes {
  readonly #counts = new Uint32Array(TIME_STEPS);
  /** By slot: the minute that is stored there. A slot with another minute is outdated. */
  readonly #minuteOf = new Float64Array(USAGE_MINUTES_MAX).fill(-1);
  readonly #late = new Uint8Array(USAGE_MINUTES_MAX);
  #minute = -1;

  /** Sets the current minute, counted since 1970. Returning to a minute starts it again. */
  turnTo(minute: number): void {
    if (minute === this.#minute) return;
    if (this.#minute >= 0) this.#keep();
    this.#counts.fill(0);
    this.#minute = minute;
  }

  /** Counts an answer that took this long. */
  took(millis: number): void {
    const step = stepOf(millis);
    this.#counts[step] = (this.#counts[step] ?? 0) + 1;
  }

  /** By minute, up to `untilMinute`: 0 if nothing was timed, else the step of the 99th percentile + 1. */
  late(minutes: number, untilMinute: number): number[] {
    return Array.from({ length: minutes }, (_, i) => this.#lateIn(untilMinute + 1 - minutes + i));
  }

  #lateIn(minute: number): number {
    if (minute < 0) return NOTHING;
    if (minute === this.#minute) return quantileStep(this.#counts, LATE) + 1;
    const slot = minute % USAGE_MINUTES_MAX;
    return this.#minuteOf[slot] === minute ? (this.#late[slot] ?? NOTHING) : NOTHING;
  }

  #keep(): void {
    const slot = this.#minute % USAGE_MINUTES_MAX;
    this.#minuteOf[slot] = this.#minute;
    this.#late[slot] = quantileStep(this.#counts, LATE) + 1;
  }
}
