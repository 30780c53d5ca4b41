/**
 * Applies a new rule table to the key tables; recorded grants stay where they are. Also decides which rules that
 * left the table, and of which every key is forgotten, stay known. Pure functions of the state, so all replicas
 * compute the same.
 */
import type { Rule } from '../../api/rule.ts';
import { effectiveWindowMillis, type RuleTable, statedRule } from '../rules.ts';
import type { KeyTable } from './key-table.ts';

/** The parts of `LimiterState` that are used here. */
interface StateBefore {
  readonly applied: { readonly index: number; readonly timeMillis: number };
  readonly keyTables: readonly KeyTable[];
  readonly droppedThroughMillis: number;
  addTable(rule: Rule, windowMillis: number): KeyTable;
}

/** The key tables under `table`, which comes into force at the applied time, in sweep order. */
export function tablesUnder(table: RuleTable, state: StateBefore): KeyTable[] {
  const { index, timeMillis } = state.applied;
  const { clockDriftPpm } = table;
  const inForce = new Map(table.rules.map((rule) => [rule.id, rule]));
  const isKept = new Set<Rule>();
  // A window that stays in force keeps its age, even if its meter changes.
  const sinceMillis = new Map<string, number>();
  for (const keys of state.keyTables) if (keys.active) sinceMillis.set(keys.rule.id, keys.sinceMillis);
  for (const keys of state.keyTables) {
    const rule = inForce.get(keys.rule.id) ?? statedRule(keys.rule.id);
    keys.active = rule !== undefined && keys.keeps(rule);
    // A rule out of force keeps its own numbers for the grants it made, but the clock drift may have changed.
    const followed = rule !== undefined && keys.active ? rule : keys.rule;
    keys.follow(followed, effectiveWindowMillis(followed, clockDriftPpm), index);
    if (keys.active) isKept.add(followed);
  }
  for (const rule of table.rules) {
    if (isKept.has(rule)) continue;
    const keys = state.addTable(rule, effectiveWindowMillis(rule, clockDriftPpm));
    keys.evictedThroughMillis = state.droppedThroughMillis;
    // Earlier grants under its id, if any, were made by a different rule.
    keys.ruledIndex = index;
  }
  for (const keys of state.keyTables)
    if (keys.active) keys.sinceMillis = sinceMillis.get(keys.rule.id) ?? timeMillis + 1;
  // A rule that leaves without a grant is dropped; any other keeps its grants.
  return state.keyTables.filter((keys) => keys.active || keys.size > 0 || keys.evictedThroughMillis > 0);
}

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
