/** Combines the numbers of several rounds: medians, ranges, and ratios taken within each round. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** The median; for an even count the mean of the two middle values, for no values NaN. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Median and range. Undefined and NaN values were not measured and are left out; undefined if none is left. */
export function spreadOf(values: readonly (number | undefined)[]): Spread | undefined {
  const measured = values.filter((value) => value !== undefined && Number.isFinite(value)) as number[];
  if (measured.length === 0) return undefined;
  return { median: median(measured), min: Math.min(...measured), max: Math.max(...measured) };
}

/**
 * Ratios of two measurements within each round, where conditions were about the same. Their median differs from the
 * ratio of the medians. A round that lacks one of the two does not count.
 *
 * @param of numerators, by round
 * @param to denominators, by round
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
