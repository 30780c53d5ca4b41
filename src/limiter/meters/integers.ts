/** Division of safe integers, exact wherever the quotient of two floats might not be. Nothing else. */

const HALF = 65_536;

/** @param value >= 0 @param by >= 1 */
export function floorDiv(value: number, by: number): number {
  return (value - (value % by)) / by;
}

/** @param value >= 0 @param by >= 1 */
export function ceilDiv(value: number, by: number): number {
  const rest = value % by;
  return (value - rest) / by + (rest === 0 ? 0 : 1);
}

/**
 * `value * times / by`, rounded up.
 *
 * @param value below `by`
 * @param times, by 1 to 2^32 - 1: the product may be beyond 2^53, so it is divided half by half
 */
export function ceilScaled(value: number, times: number, by: number): number {
  const high = value * floorDiv(times, HALF);
  const low = value * (times % HALF);
  return floorDiv(high, by) * HALF + ceilDiv((high % by) * HALF + low, by);
}
