/**
 * The promise of each meter about the grants of one key under one rule, in the order in which they were made. Written
 * again from docs/concepts/meters.md and docs/internals/limiter.md, without the product's code.
 */
import type { Rule } from '../../src/api/rule.ts';
import { capacityOf, meterKindOf } from './naive-meters.ts';

export interface CountedGrant {
  readonly timeMillis: number;
  readonly cost: number;
}

/** In words, by how many costs the last grant is too much; undefined if it keeps the promise. */
export function brokenPromise(
  rule: Rule,
  grants: readonly CountedGrant[],
  flow: { readonly windowMillis: number; readonly roundingMillis: number },
): string | undefined {
  switch (meterKindOf(rule)) {
    case 'bucket':
      return overflow(rule, grants, flow);
    case 'fixedWindow':
      return overQuota(rule, grants);
    case 'slidingCounter':
      return overQuota(rule, grants) ?? overCounted(rule, grants);
    default:
      return undefined;
  }
}

/** In no interval that ends with the last grant is more than fits plus what drained meanwhile. */
export function overflow(
  rule: Rule,
  grants: readonly CountedGrant[],
  { windowMillis, roundingMillis }: { readonly windowMillis: number; readonly roundingMillis: number },
): string | undefined {
  const last = grants.at(-1);
  let cost = 0;
  for (const grant of grants.toReversed()) {
    cost += grant.cost;
    const elapsed = (last?.timeMillis ?? 0) - grant.timeMillis + roundingMillis;
    if ((cost - capacityOf(rule)) * windowMillis <= rule.limit * elapsed) continue;
    return `${cost} in ${elapsed} ms, of ${capacityOf(rule)} and ${rule.limit} per ${windowMillis} ms`;
  }
  return undefined;
}

function costIn({ windowMillis }: Rule, grants: readonly CountedGrant[], window: number): number {
  const inside = grants.filter(({ timeMillis }) => Math.floor(timeMillis / windowMillis) === window);
  return inside.reduce((sum, { cost }) => sum + cost, 0);
}

function lastWindow({ windowMillis }: Rule, grants: readonly CountedGrant[]): number {
  return Math.floor((grants.at(-1)?.timeMillis ?? 0) / windowMillis);
}

function overQuota(rule: Rule, grants: readonly CountedGrant[]): string | undefined {
  const cost = costIn(rule, grants, lastWindow(rule, grants));
  return cost <= rule.limit ? undefined : `${cost} of ${rule.limit} in an aligned window`;
}

/** All of this window and of the one before: what a rolling window may overlap. */
function overCounted(rule: Rule, grants: readonly CountedGrant[]): string | undefined {
  const { limit, windowMillis } = rule;
  const window = lastWindow(rule, grants);
  const before = costIn(rule, grants, window - 1);
  const elapsed = (grants.at(-1)?.timeMillis ?? 0) % windowMillis;
  const most = limit + Math.ceil((before * elapsed) / windowMillis);
  const cost = before + costIn(rule, grants, window);
  return cost <= most ? undefined : `${cost} of ${most} in two aligned windows`;
}

/** A grant of a log, which promises that no rolling window exceeds the limit. */
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
