/**
 * Finds certain violations of a limit in what clients saw: grants that cannot have been made at any moments within
 * their [invoke, complete] intervals without more than the limit falling into one window. Sound: no false alarm.
 */

export interface ObservedGrant {
  readonly invokeMillis: number;
  readonly completeMillis: number;
}

const WINDOWS_MAX = 8;

/**
 * A description of the first certain violation, or undefined.
 *
 * More than k * limit grants that lie wholly inside a span shorter than k windows are a violation: cut the span
 * into k pieces no longer than a window, and one of them holds more than the limit.
 */
export function findOverGrant(
  grants: readonly ObservedGrant[],
  limit: number,
  windowMillis: number,
): string | undefined {
  const byInvoke = [...grants].sort((a, b) => a.invokeMillis - b.invokeMillis);
  for (let k = 1; k <= WINDOWS_MAX; k += 1) {
    for (let i = 0; i < byInvoke.length; i += 1) {
      const first = byInvoke[i];
      if (first === undefined) break;
      const end = first.invokeMillis + k * windowMillis;
      let inside = 0;
      for (let j = i; j < byInvoke.length; j += 1) {
        const grant = byInvoke[j];
        if (grant === undefined || grant.invokeMillis >= end) break;
        if (grant.completeMillis < end) inside += 1;
      }
      if (inside > k * limit)
        return `${inside} grants within ${k} windows of ${windowMillis} ms, limit ${limit}`;
    }
  }
  return undefined;
}
