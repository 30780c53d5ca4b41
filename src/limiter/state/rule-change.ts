/** What becomes of the keys of rules when another rule table comes into force. Recorded grants stay where they are. */
import type { Rule } from '../../api/rule.ts';
import { effectiveWindowMillis, type RuleTable } from '../rules.ts';
import { statedRule } from '../stated-rules.ts';
import type { KeyTable } from './key-table.ts';

/** What it looks at of the state, see `LimiterState`. */
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
  // A window that stays in force stays as old as it is, though its meter may be another one.
  const sinceMillis = new Map<string, number>();
  for (const keys of state.keyTables) if (keys.active) sinceMillis.set(keys.rule.id, keys.sinceMillis);
  for (const keys of state.keyTables) {
    const rule = inForce.get(keys.rule.id) ?? statedRule(keys.rule.id);
    keys.active = rule !== undefined && keys.keeps(rule);
    // Out of force its own rule stays what its grants count by; and clocks drift all the same.
    const followed = rule !== undefined && keys.active ? rule : keys.rule;
    keys.follow(followed, effectiveWindowMillis(followed, clockDriftPpm), index);
    if (keys.active) isKept.add(followed);
  }
  for (const rule of table.rules) {
    if (isKept.has(rule)) continue;
    const keys = state.addTable(rule, effectiveWindowMillis(rule, clockDriftPpm));
    keys.evictedThroughMillis = state.droppedThroughMillis;
    // What was granted under its id before was granted by another rule, if any.
    keys.ruledIndex = index;
  }
  for (const keys of state.keyTables)
    if (keys.active) keys.sinceMillis = sinceMillis.get(keys.rule.id) ?? timeMillis + 1;
  // A rule that left without ever granting takes nothing with it; any other keeps what it granted.
  return state.keyTables.filter((keys) => keys.active || keys.size > 0 || keys.evictedThroughMillis > 0);
}
