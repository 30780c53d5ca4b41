/** A rule as rules.yaml has it, from what was read of it: whoever was told it can change a field, and give it back. */
import { keyKind, partName, type RuleCost, type RuleDefinition } from './rule-definition.ts';
import { isForUnmatched } from './unmatched.ts';

/**
 * What is as it is without being stated is left out. Undefined of what a list of rules has no words for: a rule for descriptors in an
 * order, and what the document says of requests that no rule is for.
 */
export function nativeForm(definition: RuleDefinition): Readonly<Record<string, unknown>> | undefined {
  const { id, scope, group, priority, windows, meter, burst, cost, clock, failMode } = definition;
  if (scope.kind === 'path' || isForUnmatched(definition)) return undefined;
  const { enabled, shadow, named, unlimited, replaces, comment } = definition;
  return {
    id,
    ...(scope.conditions.length > 0 && {
      match: Object.fromEntries(scope.conditions.map(({ name, value }) => [name, value])),
    }),
    ...(scope.key.length > 0 && { key: scope.key.map(partName) }),
    ...(unlimited ? { unlimited } : { windows }),
    ...(meter !== 'slidingLog' && { meter }),
    ...(burst !== undefined && { burst }),
    ...costForm(cost),
    ...(clock !== 'request' && { clock }),
    ...(failMode !== 'closed' && { failMode }),
    ...(!enabled && { enabled }),
    ...(priority !== 0 && { priority }),
    ...(group !== keyKind(scope.key) && { group }),
    ...(shadow && { shadow }),
    ...(named === true && { named }),
    ...(replaces.length > 0 && { replaces }),
    ...(comment !== undefined && { comment }),
  };
}

function costForm({ otherwise, endpoints }: RuleCost): { readonly cost?: unknown } {
  if (endpoints.length === 0) return otherwise === 1 ? {} : { cost: otherwise };
  const byEndpoint = endpoints.map(({ endpoint, cost }) => [endpoint, cost] as const);
  return { cost: Object.fromEntries([...byEndpoint, ['*', otherwise]]) };
}
