/**
 * A rule table as rules: all of them count by user. The first is for every request that names none, the others are asked by name.
 * So it is with the rules that `cluster.json` creates a cluster with, and with a change that gives a list of limits.
 */
import type { Rule } from '../api/rule.ts';
import { USER } from '../api/descriptors.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { LIKE_ITS_RULE } from './window-id.ts';

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
