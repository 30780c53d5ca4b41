/**
 * Counts answer times in exponential steps of a quarter of a doubling. Counts of several nodes can be added; a
 * quantile of the sum is that of all answers, too high by a fifth at most. Pure functions.
 */

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
export function countIn(counts: Counts): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

/**
 * The step that contains a quantile; -1 if nothing was counted. @param counts by step @param part the quantile, 0
 * to 1
 */
export function quantileStep(counts: Counts, part: number): number {
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
