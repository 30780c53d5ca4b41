/**
 * rules.yaml: the list `rules`, and the short form by tiers, endpoints and customers, in one document. What a rule says is
 * read elsewhere.
 */
import { Fields, itemsOf, mapOf, shown } from './fields.ts';
import type { Findings } from './mistakes.ts';
import { readNativeRule } from './native-rule.ts';
import { DEFINITIONS_MAX } from './rule-definition.ts';
import { readTierTable, TABLE_FIELDS } from './tier-table.ts';
import type { Located } from './together.ts';
import type { MapTree } from './yaml-tree.ts';

/** What the short form may lie in. */
const TABLE = 'rate_limits';
export const NATIVE_FIELDS = ['rules', TABLE, ...TABLE_FIELDS];

export function readNativeRules(map: MapTree, findings: Findings): readonly Located[] {
  const fields = new Fields(map, NATIVE_FIELDS, findings);
  const rules: Located[] = [];
  const list = fields.tree('rules');
  if (list?.kind === 'list') {
    for (const tree of itemsOf(list, 'rules', DEFINITIONS_MAX, findings)) {
      const rule = readNativeRule(tree, findings);
      if (rule !== undefined) rules.push(rule);
    }
  } else if (list !== undefined) {
    findings.mistake(list.at, `rules must be a list of rules, but is ${shown(list)}`);
  }
  const tree = fields.tree(TABLE);
  const table = tree && mapOf(tree, TABLE, findings);
  if (table !== undefined) rules.push(...readTierTable(new Fields(table, TABLE_FIELDS, findings), findings));
  rules.push(...readTierTable(fields, findings));
  return rules;
}
