/**
 * What a document says of requests that none of its rules is for. It is kept among the definitions, behind those of rules: so it is in
 * force, shown, compared and kept with them. It has no windows, and applies to no request that a rule is for.
 */
import { UNMATCHED, type Unmatched } from '../api/unmatched.ts';
import type { Fields } from './fields.ts';
import { PRIORITY_MAX, type RuleDefinition } from './rule-definition.ts';
import type { Located } from './together.ts';

const CHOICES = ['allow', 'deny', 'shadow'] as const;

/** `unmatched` at the top of a document. Nothing if such requests are let through, as they are where it is absent. */
export function readUnmatched(fields: Fields): readonly Located[] {
  const chosen = fields.choice(UNMATCHED, CHOICES) ?? 'allow';
  if (chosen === 'allow') return [];
  const definition = definitionOf(chosen);
  return [{ definition, at: fields.whereIs(UNMATCHED), replacesAt: [] }];
}

/** Undefined: such requests are let through. */
export function unmatchedIn(definitions: readonly RuleDefinition[]): Unmatched | undefined {
  const found = definitions.find(isForUnmatched);
  return found && (found.shadow ? 'shadow' : 'deny');
}

export function isForUnmatched({ unmatched }: RuleDefinition): boolean {
  return unmatched === true;
}

function definitionOf(chosen: Unmatched): RuleDefinition {
  return {
    id: UNMATCHED,
    // No rule can replace it.
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
