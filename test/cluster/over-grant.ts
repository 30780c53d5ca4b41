/**
 * Finds certain violations of a limit in what clients saw: grants that cannot have been made at any moments within
 * their [invoke, complete] intervals without more than the limit falling into one window. Sound: no false alarm.
 */

export interface ObservedGrant {
  readonly invokeMillis: number;
  readonly completeMillis: number;
  /** 1 if omitted. */
  readonly cost?: number;
}

const WINDOWS_MAX = 8;

/**
 * A description of the first certain violation, or undefined. O(n log n) for each number of windows.
 *
 * More than k * limit granted wholly inside a span shorter than k windows is a violation: cut the span into k pieces
 * no longer than a window, and one of them holds more than the limit.
 */
export function findOverGrant(
  grants: readonly ObservedGrant[],
  limit: number,
  windowMillis: number,
): string | undefined {
  let total = 0;
  for (const { cost = 1 } of grants) total += cost;
  const latestFirst = [...grants].sort((a, b) => b.invokeMillis - a.invokeMillis);
  const completions = Float64Array.from(grants, ({ completeMillis }) => completeMillis).sort();
  for (let k = 1; k <= WINDOWS_MAX && k * limit < total; k += 1) {
    const most = densestSpan(latestFirst, completions, k * windowMillis);
    if (most > k * limit) return `${most} granted within ${k} windows of ${windowMillis} ms, limit ${limit}`;
  }
  return undefined;
}

/** The largest cost granted wholly inside a span shorter than `spanMillis` that begins with some grant's invocation. */
function densestSpan(
  latestFirst: readonly ObservedGrant[],
  completions: Float64Array,
  spanMillis: number,
): number {
  const costs = new Float64Array(completions.length + 1);
  let most = 0;
  for (let i = 0; i < latestFirst.length;) {
    const begin = latestFirst[i]?.invokeMillis ?? 0;
    for (; i < latestFirst.length; i += 1) {
      const grant = latestFirst[i];
      if (grant === undefined || grant.invokeMillis !== begin) break;
      const rank = countBelow(completions, grant.completeMillis) + 1;
      // A Fenwick tree: cost by rank of completion.
      for (let at = rank; at < costs.length; at += at & -at) costs[at] = (costs[at] ?? 0) + (grant.cost ?? 1);
    }
    let inside = 0;
    for (let at = countBelow(completions, begin + spanMillis); at > 0; at -= at & -at)
      inside += costs[at] ?? 0;
    most = Math.max(most, inside);
  }
  return most;
}

/** Counts the sorted values below `bound`. */
function countBelow(sorted: Float64Array, bound: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
