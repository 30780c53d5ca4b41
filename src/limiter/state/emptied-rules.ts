/**
 * Rules that left the table, and of which every key was forgotten: which of them stay known. Pure, and the same on all
 * replicas: it goes by what is part of the state alone.
 */
import type { KeyTable } from './key-table.ts';

/**
 * So many emptied rules stay known, with when all that they granted was out: each takes some kilobytes that `StateSize`
 * does not count, and operators may rename rules for ever.
 */
export const EMPTIED_RULES_MAX = 256;

/**
 * By id the emptied rules beyond the bound, those whose grants were out first; and from when on nothing counts of what each
 * of them granted, in milliseconds of group time.
 */
export function emptiedBeyondBound(tables: readonly KeyTable[]): ReadonlyMap<string, number> {
  const throughMillis = new Map<string, number>();
  for (const { rule, evictedThroughMillis } of tables)
    throughMillis.set(rule.id, Math.max(evictedThroughMillis, throughMillis.get(rule.id) ?? 0));
  // What is in force, or remembers anything under any of its meters, is not emptied.
  for (const { rule, active, size } of tables) if (active || size > 0) throughMillis.delete(rule.id);
  if (throughMillis.size <= EMPTIED_RULES_MAX) return new Map();
  const inOrder = [...throughMillis].sort(([, a], [, b]) => a - b);
  return new Map(inOrder.slice(0, throughMillis.size - EMPTIED_RULES_MAX));
}
