/** Division of safe integers that is exact where the quotient of two floats might not be. */

const HALF = 65_536;

/**
 * `value / by`, rounded down.
 *
 * @param value >= 0
 * @param by >= 1
 */
export function floorDiv(value: number, by: number): number {
  return (value - (value % by)) / by;
}

/**
 * `value / by`, rounded up.
 *
 * @param value >= 0
 * @param by >= 1
 */
export function ceilDiv(value: number, by: number): number {
  const rest = value % by;
  return (value - rest) / by + (rest === 0 ? 0 : 1);
}

/**
 * `value * times / by`, rounded up.
 *
 * @param value below `by`
 * @param times 1 to 2^32 - 1, as is `by`. The product may exceed 2^53, so it is divided in two halves
 */
export function ceilScaled(value: number, times: number, by: number): number {
  const high = value * floorDiv(times, HALF);
  const low = value * (times % HALF);
  return floorDiv(high, by) * HALF + ceilDiv((high % by) * HALF + low, by);
}
