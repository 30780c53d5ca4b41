/** Rules that nobody configured: a request states them in the rule's id. Pure. */
import type { Rule } from '../api/rule.ts';
import { parseStatedRule, parseStatedThrottle } from '../api/stated-rule.ts';

/**
 * One key counts under so many stated windows at a time; one more is refused as `at_capacity`. Numbers are callers' to choose, and
 * who chooses many takes room of one key alone. A request under
 * several limits is asked about each of them: it may go beyond by as many as it has.
 */
export const STATED_WINDOWS_PER_KEY_MAX = 64;

/** The rule that `ruleId` states; undefined if it is a name like any other. */
export function statedRule(ruleId: string): Rule | undefined {
  // A caller's own time could be chosen so that nothing ever counts; who wants that configures a rule.
  const stated = parseStatedRule(ruleId);
  if (stated !== undefined) return { id: ruleId, ...stated, clock: 'cluster' };
  const throttle = parseStatedThrottle(ruleId);
  if (throttle === undefined) return undefined;
  const { count: limit, periodMillis: windowMillis, maxBurst } = throttle;
  return { id: ruleId, limit, windowMillis, clock: 'cluster', meter: 'tokenBucket', burst: maxBurst + 1 };
}

/** Is it judged by one state per key, which the numbers of every call share? */
export function isThrottle({ id, meter }: Rule): boolean {
  return meter === 'tokenBucket' && parseStatedThrottle(id) !== undefined;
}
