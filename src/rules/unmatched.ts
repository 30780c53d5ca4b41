/**
 * The setting for requests that no rule matches (`unmatched`). It is stored as a definition after those of the
 * rules, so that it is replicated, shown and compared with them. It has no windows and matches no request.
 */
import { UNMATCHED, type Unmatched } from '../api/refusals.ts';
import type { Fields } from './fields.ts';
import { PRIORITY_MAX, type RuleDefinition } from './rule-definition.ts';
import type { Located } from './together.ts';

const CHOICES = ['allow', 'deny', 'shadow'] as const;

/** Reads `unmatched` at the top of a document. Empty for `allow`, which is the default. */
export function readUnmatched(fields: Fields): readonly Located[] {
  const chosen = fields.choice(UNMATCHED, CHOICES) ?? 'allow';
  if (chosen === 'allow') return [];
  const definition = definitionOf(chosen);
  return [{ definition, at: fields.whereIs(UNMATCHED), replacesAt: [] }];
}

/** The setting in these definitions. Undefined: such requests are let through. */
export function unmatchedIn(definitions: readonly RuleDefinition[]): Unmatched | undefined {
  const found = definitions.find(isForUnmatched);
  return found && (found.shadow ? 'shadow' : 'deny');
}

/** The definition is this setting and not a rule. */
export function isForUnmatched({ unmatched }: RuleDefinition): boolean {
  return unmatched === true;
}

function definitionOf(chosen: Unmatched): RuleDefinition {
  return {
    id: UNMATCHED,
    // Without a name no rule can replace it.
    name: '',
    scope: { kind: 'descriptors', conditions: [], key: [] },
    group: UNMATCHED,
    priority: -PRIORITY_MAX,
    windows: [],
    meter: 'slidingLog',
    cost: { otherwise: 1, endpoints: [] },
    clock: 'request',
    failMode: 'closed',
    enabled: true,
    shadow: chosen === 'shadow',
    unlimited: false,
    unmatched: true,
    replaces: [],
  };
}
