/**
 * Rolling windows over what a key was granted, and what the promise for them is worth after a change of the rules,
 * written down again, independent of the product.
 */

export interface TimedGrant {
  readonly timeMillis: number;
  /** Group time at which it was made. */
  readonly madeMillis: number;
  readonly cost: number;
}

/**
 * The most that any window has that begins at or before the grant `last` and ends at or after it: callers' times come in
 * any order, and from any epoch. Only what is later than `forgottenMillis` counts.
 */
export function costAround(
  grants: readonly TimedGrant[],
  last: TimedGrant,
  { windowMillis, forgottenMillis }: { readonly windowMillis: number; readonly forgottenMillis: number },
): number {
  const t = last.timeMillis;
  const near = grants.filter(
    ({ timeMillis }) =>
      timeMillis > Math.max(t - windowMillis, forgottenMillis) && timeMillis < t + windowMillis,
  );
  let most = 0;
  for (const { timeMillis: end } of near) {
    if (end < t) continue;
    const inside = near.filter(({ timeMillis }) => timeMillis <= end && timeMillis > end - windowMillis);
    most = Math.max(
      most,
      inside.reduce((sum, { cost }) => sum + cost, 0),
    );
  }
  return most;
}

/**
 * A window that grows to what a key was granted: all up to here may be forgotten. Whatever had left the shorter window when
 * the key was last granted something, or all, if the key was idle for a window when the rule changed.
 */
export function forgottenAtGrowth(
  grants: readonly TimedGrant[],
  { windowMillis, nowMillis }: { readonly windowMillis: number; readonly nowMillis: number },
): number {
  let newest = -Infinity;
  let lastMade = -Infinity;
  for (const { timeMillis, madeMillis } of grants) {
    newest = Math.max(newest, timeMillis);
    lastMade = Math.max(lastMade, madeMillis);
  }
  const isIdle = Math.max(newest, lastMade) + windowMillis <= nowMillis;
  return isIdle ? newest : newest - windowMillis;
}
