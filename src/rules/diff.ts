/**
 * Compares two sets of rules: which rules were added or removed, and which fields changed, with the effect of each
 * change. The order of rules is compared only where it matters, for patterns of values on paths.
 */
import { type Binding, type FieldChange, fieldChanges } from './field-changes.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { isPattern } from './value-pattern.ts';
import { ruleInWords } from './words.ts';

/** One difference between two rule sets; `words` describes it for people. */
export type RuleChange =
  | { readonly kind: 'added' | 'removed'; readonly id: string; readonly words: string }
  | {
      readonly kind: 'changed';
      readonly id: string;
      readonly words: string;
      /** Whether the rule alone has become stricter for the requests that it applies to. */
      readonly binds: Binding;
      readonly fields: readonly FieldChange[];
    }
  | { readonly kind: 'reordered'; readonly words: string };

/** All differences that change decisions: removed rules first, then the rest in the order of the new rules. */
export function diffRules(
  before: readonly RuleDefinition[],
  after: readonly RuleDefinition[],
): readonly RuleChange[] {
  const old = new Map(before.map((rule) => [rule.id, rule]));
  const ids = new Set(after.map(({ id }) => id));
  const changes: RuleChange[] = before
    .filter(({ id }) => !ids.has(id))
    .map((rule) => ({ kind: 'removed', id: rule.id, words: `${rule.id} is removed: ${ruleInWords(rule)}` }));
  for (const rule of after) {
    const was = old.get(rule.id);
    if (was === undefined) {
      changes.push({ kind: 'added', id: rule.id, words: `${rule.id} is added: ${ruleInWords(rule)}` });
      continue;
    }
    const fields = fieldChanges(was, rule);
    if (fields.length === 0) continue;
    const binds = together(fields);
    changes.push({ kind: 'changed', id: rule.id, words: `${rule.id} ${HOW[binds]}`, binds, fields });
  }
  if (patternOrder(before, ids) !== patternOrder(after, new Set(old.keys()))) {
    changes.push({
      kind: 'reordered',
      words: 'value patterns come in another order; the first one that fits applies',
    });
  }
  return changes;
}

const HOW: Readonly<Record<Binding, string>> = {
  tighter: 'becomes stricter',
  looser: 'becomes looser',
  differently: 'limits differently',
  alike: 'limits as before',
};

function together(fields: readonly FieldChange[]): Binding {
  const felt = new Set(fields.map(({ binds }) => binds).filter((binds) => binds !== 'alike'));
  const [only = 'alike'] = felt;
  return felt.size > 1 ? 'differently' : only;
}

/** The order in the document matters only for patterns of values on levels of descriptors. */
function patternOrder(rules: readonly RuleDefinition[], known: ReadonlySet<string>): string {
  const ordered = rules.filter(
    ({ id, scope }) =>
      known.has(id) && scope.kind === 'path' && scope.steps.some(({ value }) => isPattern(value ?? '')),
  );
  return JSON.stringify(ordered.map(({ id }) => id));
}
