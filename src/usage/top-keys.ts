/**
 * Lists of the most frequent keys with their error bounds, and their sum. A list also bounds the keys that it does
 * not contain, so a sum keeps the guarantees of its lists: mergeable summaries (Agarwal et al., "Mergeable
 * Summaries", PODS 2012). Pure functions.
 */
import type { TopKey } from '../api/usage.ts';

/** A list of frequent keys. */
export interface TopList {
  /** Each key was counted from `count - error` to `count` times. A key of a rule is listed once. */
  readonly keys: readonly TopKey[];
  /** A key that is not listed was counted at most this often. */
  readonly othersMax: number;
}

/** The first `max` keys of a list, most frequent first. */
export function cut({ keys, othersMax }: TopList, max: number): TopList {
  const sorted = keys.toSorted(
    (a, b) => b.count - a.count || compare(a.rule, b.rule) || compare(a.key, b.key),
  );
  return { keys: sorted.slice(0, max), othersMax: Math.max(othersMax, sorted[max]?.count ?? 0) };
}

/** The list of everything that these lists counted. */
export function sumOf(lists: readonly TopList[]): TopList {
  const othersMax = lists.reduce((sum, list) => sum + list.othersMax, 0);
  const byRule = new Map<string, Map<string, { count: number; error: number }>>();
  for (const list of lists) {
    for (const { rule, key, count, error } of list.keys) {
      let keysOfRule = byRule.get(rule);
      if (keysOfRule === undefined) byRule.set(rule, (keysOfRule = new Map()));
      let sum = keysOfRule.get(key);
      // Start with the bound for keys that no list contains; each list that contains the key corrects its part.
      if (sum === undefined) keysOfRule.set(key, (sum = { count: othersMax, error: othersMax }));
      sum.count += count - list.othersMax;
      sum.error += error - list.othersMax;
    }
  }
  const keys = [...byRule].flatMap(([rule, keysOfRule]) =>
    [...keysOfRule].map(([key, { count, error }]) => ({ rule, key, count, error })),
  );
  return { keys, othersMax };
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
