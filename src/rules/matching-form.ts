/**
 * Extracts the part of a document that says which requests its rules match and which keys they count by. It is kept
 * for earlier rules, to find out which key kept the id of a request. Equal texts match all requests alike. Limits
 * are not included.
 */
import type { LimitWindow, RuleDefinition } from './rule-definition.ts';
import { isForUnmatched } from './unmatched.ts';

/** Stands in for the windows of any rule. */
const ANY_WINDOW: readonly LimitWindow[] = [{ name: 'any', limit: 1, windowMillis: 1 }];

/** The matching part as JSON: definitions as `RuleMatcher` takes them. */
export function matchingForm(definitions: readonly RuleDefinition[]): string {
  // Only enabled rules that can deny keep the id of a request.
  const matching = definitions.filter((rule) => rule.enabled && !rule.shadow && !isForUnmatched(rule));
  return JSON.stringify(matching.map(withoutLimits));
}

function withoutLimits({
  id,
  name,
  scope,
  group,
  priority,
  named,
  unlimited,
  replaces,
}: RuleDefinition): RuleDefinition {
  return {
    id,
    name,
    scope,
    group,
    priority,
    windows: unlimited ? [] : ANY_WINDOW,
    meter: 'slidingLog',
    cost: { otherwise: 1, endpoints: [] },
    clock: 'cluster',
    failMode: 'closed',
    enabled: true,
    shadow: false,
    ...(named === true && { named }),
    unlimited,
    replaces,
  };
}
