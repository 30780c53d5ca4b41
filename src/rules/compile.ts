/**
 * What the limiter keeps of rules: one rule for each window of each definition. Which requests they are for is not said in
 * them; that is for `match.ts`.
 */
import type { Rule } from '../api/rule.ts';
import type { RuleDefinition } from './rule-definition.ts';
import { windowRuleId } from './window-id.ts';

/** In the order of the definitions, those of each the shortest first. Of those without limits, or not enabled, there are none. */
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
