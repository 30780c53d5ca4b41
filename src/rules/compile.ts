/**
 * Compiles rule definitions to the rules that the limiter stores: one for each window. Which requests a rule
 * applies to is not part of them; match.ts decides that.
 */
import type { Rule } from '../api/rule.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { windowRuleId } from './window-id.ts';

/**
 * The limiter's rules, in the order of the definitions; the windows of each definition are sorted, shortest first.
 * Unlimited and disabled definitions give none.
 */
export function limiterRulesOf(definitions: readonly RuleDefinition[]): readonly Rule[] {
  return definitions.filter(({ enabled, unlimited }) => enabled && !unlimited).flatMap(rulesOf);
}

function rulesOf(definition: RuleDefinition): readonly Rule[] {
  const { windows, meter, burst, clock } = definition;
  const shortest = windows[0]?.windowMillis;
  return windows.map((window) => ({
    id: windowRuleId(definition, window),
    of: definition.id,
    limit: window.limit,
    windowMillis: window.windowMillis,
    clock,
    meter,
    ...(window.windowMillis === shortest && burst !== undefined && { burst }),
  }));
}
