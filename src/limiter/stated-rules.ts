/** Rules that nobody configured: a request states limit and window in the rule's id. Pure. */
import type { Rule } from '../api/rule.ts';
import { parseStatedRule } from '../api/stated-rule.ts';

/**
 * Beyond so many rules that are not in the table and have something recorded, no grant is made by another stated one:
 * ids are callers' to choose, and each takes some kilobytes that `StateSize` does not count.
 */
export const STATED_RULES_MAX = 256;

/** The rule that `ruleId` states; undefined if it is a name like any other. */
export function statedRule(ruleId: string): Rule | undefined {
  const stated = parseStatedRule(ruleId);
  // A caller's own time could be chosen so that nothing ever counts; who wants that configures a rule.
  return stated && { id: ruleId, ...stated, clock: 'cluster' };
}
