/**
 * How long answers took, as counts by step: each step is a quarter of a doubling longer than the one before. Counts of several
 * nodes add up, and their quantile is that of all answers together, at most a fifth too long. Pure.
 */

/** Of the shortest time that is told apart. */
const SHORTEST_MILLIS = 0.125;
/** Each is so much longer than the one before: a quantile is told too long by this factor at most. */
const STEPS_PER_DOUBLING = 4;
/** The last is for all that took 8 s and longer. */
export const TIME_STEPS = 16 * STEPS_PER_DOUBLING + 1;
export const LATE = 0.99;

type Counts = Uint32Array | Float64Array | readonly number[];

export function stepOf(millis: number): number {
  const step = Math.ceil(Math.log2(Math.max(millis, SHORTEST_MILLIS) / SHORTEST_MILLIS) * STEPS_PER_DOUBLING);
  return Math.min(step, TIME_STEPS - 1);
}

/** Where the step ends. */
export function millisOfStep(step: number): number {
  return SHORTEST_MILLIS * 2 ** (step / STEPS_PER_DOUBLING);
}

export function countIn(counts: Counts): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

/** The step that the quantile is in; -1 of none. @param counts by step */
export function quantileStep(counts: Counts, part: number): number {
  const total = countIn(counts);
  if (total === 0) return -1;
  let seen = 0;
  return counts.findIndex((count) => (seen += count) >= part * total);
}

/** The end of that step; 0 of none. */
export function quantileMillis(counts: Counts, part: number): number {
  const step = quantileStep(counts, part);
  return step < 0 ? 0 : millisOfStep(step);
}
