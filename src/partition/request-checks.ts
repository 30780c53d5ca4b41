/**
 * What can be said of a well-formed request by the rules alone: that it can never be decided under them, or not yet. It
 * looks at no grants.
 */
import type { AllowRequest } from '../api/request.ts';
import type { Rule, RuleTable } from '../limiter/rules.ts';
import { type Answer, invalid, unavailable } from './answer.ts';

/** Why the request cannot be decided under these rules. */
export function checkedAgainstRules(
  { ruleId, cost = 1, timestampMillis }: AllowRequest,
  table: RuleTable | undefined,
): Answer | undefined {
  if (table === undefined) return unavailable('starting', false);
  const rule: Rule | undefined =
    ruleId === undefined ? table.rules[0] : table.rules.find((candidate) => candidate.id === ruleId);
  if (rule === undefined) return invalid('rule', `there is no rule '${ruleId}'`);
  if (rule.limit > 0 && cost > rule.limit) {
    return invalid('cost', `cost must be at most the limit of rule '${rule.id}', which is ${rule.limit}`);
  }
  if (timestampMillis !== undefined && rule.clock === 'cluster') {
    return invalid(
      'timestampMillis',
      `rule '${rule.id}' uses the cluster's clock and takes no timestampMillis`,
    );
  }
  return undefined;
}
