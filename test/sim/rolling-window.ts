/**
 * Rolling windows over the grants of a key, and what they promise after a change of the rules. Written again, without
 * the product's code.
 */

export interface TimedGrant {
  readonly timeMillis: number;
  /** Group time at which it was made. */
  readonly madeMillis: number;
  readonly cost: number;
}

/**
 * The largest sum of a window that begins at or before the grant `last` and ends at or after it: callers' times come in
 * any order and from any epoch. Only grants later than `forgottenMillis` count.
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
 * When a window grows, all grants up to the returned time may be forgotten: those that had left the shorter window when
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
