/**
 * rules.yaml: the list `rules`, and the short form by tiers, endpoints and customers, in one document. What a rule says is
 * read elsewhere.
 */
import { UNMATCHED } from '../api/unmatched.ts';
import { Fields, itemsOf, mapOf, shown } from './fields.ts';
import type { Findings } from './mistakes.ts';
import { readNativeRule } from './native-rule.ts';
import { DEFINITIONS_MAX } from './rule-definition.ts';
import { readTierTable, TABLE_FIELDS } from './tier-table.ts';
import { inShadow, type Located } from './together.ts';
import { readUnmatched } from './unmatched.ts';
import type { MapTree, Tree } from './yaml-tree.ts';

/** What the short form may lie in. */
const TABLE = 'rate_limits';
/** Where rules stand: a document that has one of them is of this form. */
export const NATIVE_FIELDS = ['rules', TABLE, ...TABLE_FIELDS];
/** Puts all rules of the document in shadow. */
const SHADOW = 'shadow';

export function readNativeRules(map: MapTree, findings: Findings): readonly Located[] {
  const fields = new Fields(map, [...NATIVE_FIELDS, UNMATCHED, SHADOW], findings);
  const isInShadow = fields.flag(SHADOW);
  const rules: Located[] = [];
  const list = fields.tree('rules');
  if (list?.kind === 'list') {
    for (const tree of itemsOf(list, 'rules', DEFINITIONS_MAX, findings)) {
      if (isInShadow) checkNotExempt(tree, findings);
      const rule = readNativeRule(tree, findings);
      if (rule !== undefined) rules.push(rule);
    }
  } else if (list !== undefined) {
    findings.mistake(list.at, `rules must be a list of rules, but is ${shown(list)}`);
  }
  const tree = fields.tree(TABLE);
  const table = tree && mapOf(tree, TABLE, findings);
  if (table !== undefined) rules.push(...readTierTable(new Fields(table, TABLE_FIELDS, findings), findings));
  rules.push(...readTierTable(fields, findings), ...readUnmatched(fields));
  return isInShadow ? rules.map(inShadow) : rules;
}

/** Whoever writes it believes that this rule denies. */
function checkNotExempt(tree: Tree, findings: Findings): void {
  if (tree.kind !== 'map') return;
  const stated = tree.entries.find(({ key }) => key === SHADOW);
  if (stated?.value.kind === 'scalar' && stated.value.value === false)
    findings.mistake(stated.keyAt, 'shadow: true at the top of the document is for all its rules');
}
