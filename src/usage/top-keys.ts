/**
 * Lists of the most frequent keys, each with its bounds, cut short and added up. What a list does not name is bounded too, so
 * that a sum keeps what each list promises: mergeable summaries (Agarwal et al., "Mergeable Summaries", PODS 2012). Pure.
 */
import type { TopKey } from '../api/usage.ts';

export interface TopList {
  /** Each was counted from `count - error` to `count` times; a key of a rule is in it once. */
  readonly keys: readonly TopKey[];
  /** A key that is not in it was counted so often at most. */
  readonly othersMax: number;
}

/** The first `max` of a list, most first. */
export function cut({ keys, othersMax }: TopList, max: number): TopList {
  const sorted = keys.toSorted(
    (a, b) => b.count - a.count || compare(a.rule, b.rule) || compare(a.key, b.key),
  );
  return { keys: sorted.slice(0, max), othersMax: Math.max(othersMax, sorted[max]?.count ?? 0) };
}

/** Of what all of them counted together. */
export function sumOf(lists: readonly TopList[]): TopList {
  const othersMax = lists.reduce((sum, list) => sum + list.othersMax, 0);
  const byRule = new Map<string, Map<string, { count: number; error: number }>>();
  for (const list of lists) {
    for (const { rule, key, count, error } of list.keys) {
      let keysOfRule = byRule.get(rule);
      if (keysOfRule === undefined) byRule.set(rule, (keysOfRule = new Map()));
      let sum = keysOfRule.get(key);
      // As if no list had it; those that do know better.
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
