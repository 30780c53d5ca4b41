/**
 * What of a document says which requests its rules are for, and by which keys they count them: enough to find out, once other rules
 * are in force, which key kept the id of a request. Equal texts match all requests alike. Limits are no part of it.
 */
import type { LimitWindow, RuleDefinition } from './rule-definition.ts';
import { isForUnmatched } from './unmatched.ts';

/** Stands for whatever windows a rule has. */
const ANY_WINDOW: readonly LimitWindow[] = [{ name: 'any', limit: 1, windowMillis: 1 }];

/** In JSON: definitions as `RuleMatcher` takes them. */
export function matchingForm(definitions: readonly RuleDefinition[]): string {
  // No other rule charges a key, so none of them keeps an id.
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
