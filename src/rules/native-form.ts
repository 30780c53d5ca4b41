/** Writes a rule in the form of rules.yaml, so that a caller of the API can change a field and send it back. */
import { keyKind, partName, type RuleCost, type RuleDefinition } from './rule-definition.ts';
import { isForUnmatched } from './unmatched.ts';

/**
 * The fields of a rule; defaults are left out. Undefined for what this form cannot express: a rule for descriptors
 * in an order, and the setting for requests that no rule matches.
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
