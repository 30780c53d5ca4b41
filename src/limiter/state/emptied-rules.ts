/**
 * Decides which of the rules that left the table, and of which every key is forgotten, stay known. A pure function of
 * the state, so the result is the same on all replicas.
 */
import type { KeyTable } from './key-table.ts';

/**
 * How many emptied rules stay known, each with the time when all of its grants were out. A rule takes some kilobytes
 * that `StateSize` does not count, and operators may rename rules forever.
 */
export const EMPTIED_RULES_MAX = 256;

/**
 * The emptied rules beyond the bound, those whose grants were out first: rule id to the group time in milliseconds from
 * which on none of its grants counts.
 */
export function emptiedBeyondBound(tables: readonly KeyTable[]): ReadonlyMap<string, number> {
  const throughMillis = new Map<string, number>();
  for (const { rule, evictedThroughMillis } of tables)
    throughMillis.set(rule.id, Math.max(evictedThroughMillis, throughMillis.get(rule.id) ?? 0));
  // A rule that is in force, or remembers anything under any of its meters, is not emptied.
  for (const { rule, active, size } of tables) if (active || size > 0) throughMillis.delete(rule.id);
  if (throughMillis.size <= EMPTIED_RULES_MAX) return new Map();
  const inOrder = [...throughMillis].sort(([, a], [, b]) => a - b);
  return new Map(inOrder.slice(0, throughMillis.size - EMPTIED_RULES_MAX));
}
