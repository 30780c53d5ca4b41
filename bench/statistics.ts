/** Numbers of several rounds made one: medians and ranges, and ratios that were taken round by round. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** The mean of the two in the middle if their number is even. NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** What is no number was not measured, and is left out. Undefined if nothing was. */
export function spreadOf(values: readonly (number | undefined)[]): Spread | undefined {
  const measured = values.filter((value) => value !== undefined && Number.isFinite(value)) as number[];
  if (measured.length === 0) return undefined;
  return { median: median(measured), min: Math.min(...measured), max: Math.max(...measured) };
}

/**
 * The ratios of what was measured in the same round, whose conditions were about the same: their median is not the ratio
 * of the medians. Rounds that either lacks do not count.
 *
 * @param of by round
 * @param to by round
 */
export function ratiosPerRound(
  of: ReadonlyMap<number, number>,
  to: ReadonlyMap<number, number>,
): Spread | undefined {
  const ratios = [...of].map(([round, value]) => {
    const reference = to.get(round);
    return reference === undefined || reference === 0 ? undefined : value / reference;
  });
  return spreadOf(ratios);
}
