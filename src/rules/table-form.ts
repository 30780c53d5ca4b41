/**
 * Makes definitions of a plain rule table, in which all rules count by user. The first rule applies to every
 * request that names no rule; the others are asked for by name. Tables come from `cluster.json` and from changes
 * that give a list of limits.
 */
import type { Rule } from '../api/rule.ts';
import { USER } from '../api/descriptors.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { LIKE_ITS_RULE } from './window-id.ts';

/** The definitions of a table, in its order. */
export function definitionsOfTable(rules: readonly Rule[]): readonly RuleDefinition[] {
  return rules.map(({ id, limit, windowMillis, meter = 'slidingLog', burst, clock }, place) => ({
    id,
    name: id,
    scope: { kind: 'descriptors', conditions: [], key: [{ name: USER }] },
    group: id,
    priority: 0,
    windows: [{ name: LIKE_ITS_RULE, limit, windowMillis }],
    meter,
    ...(burst !== undefined && { burst }),
    cost: { otherwise: 1, endpoints: [] },
    clock,
    failMode: 'closed',
    enabled: true,
    shadow: false,
    ...(place > 0 && { named: true }),
    unlimited: false,
    replaces: [],
  }));
}
