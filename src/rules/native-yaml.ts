/**
 * Reads rules.yaml: the list `rules` and the short form by tiers, endpoints and customers, which may stand in one
 * document.
 */
import { UNMATCHED } from '../api/refusals.ts';
import { Fields, itemsOf, mapOf, shown } from './fields.ts';
import type { Findings } from './mistakes.ts';
import { readNativeRule } from './native-rule.ts';
import { DEFINITIONS_MAX } from './rule-definition.ts';
import { readTierTable, TABLE_FIELDS } from './tier-table.ts';
import { inShadow, type Located } from './together.ts';
import { readUnmatched } from './unmatched.ts';
import type { MapTree, Tree } from './yaml-tree.ts';

/** The short form may be nested in this field. */
const TABLE = 'rate_limits';
/** The fields that contain rules; a document with one of them is in this format. */
export const NATIVE_FIELDS = ['rules', TABLE, ...TABLE_FIELDS];
/** Puts all rules of the document in shadow. */
const SHADOW = 'shadow';

/** Reads a document of this format; mistakes go to `findings`. */
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

/** Reports a rule with `shadow: false` in a shadow document: its author would believe that it denies. */
function checkNotExempt(tree: Tree, findings: Findings): void {
  if (tree.kind !== 'map') return;
  const stated = tree.entries.find(({ key }) => key === SHADOW);
  if (stated?.value.kind === 'scalar' && stated.value.value === false)
    findings.mistake(stated.keyAt, 'shadow: true at the top of the document applies to all its rules');
}
