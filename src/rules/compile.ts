/**
 * What the limiter keeps of rules: one rule for each window of each definition. Which requests they are for is not said in
 * them; that is for `match.ts`.
 */
import type { Rule } from '../api/rule.ts';
import type { RuleDefinition } from './rule-definition.ts';

/**
 * The id under which the limiter keeps a window. By its place, not its length: a window that is changed keeps what it granted.
 *
 * @param place among the windows of the definition, the shortest first
 */
export function windowRuleId({ id }: RuleDefinition, place: number): string {
  return place === 0 ? id : `${id}/${place + 1}`;
}

/** In the order of the definitions, those of each the shortest first. Of those without limits, or not enabled, there are none. */
export function limiterRulesOf(definitions: readonly RuleDefinition[]): readonly Rule[] {
  return definitions.filter(({ enabled, unlimited }) => enabled && !unlimited).flatMap(rulesOf);
}

function rulesOf(definition: RuleDefinition): readonly Rule[] {
  const { windows, meter, burst, clock } = definition;
  return windows.map(({ limit, windowMillis }, place) => ({
    id: windowRuleId(definition, place),
    limit,
    windowMillis,
    clock,
    meter,
    ...(place === 0 && burst !== undefined && { burst }),
  }));
}
