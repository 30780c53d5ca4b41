/**
 * Rules that nobody configured: a request states the rule in the rule id itself, e.g. `100/60000ms`. Pure functions.
 */
import type { Rule } from '../api/rule.ts';
import { parseStatedRule, parseStatedThrottle } from '../api/stated-rule.ts';

/**
 * The number of stated windows under which one key can have grants at a time; one more is refused as `at_capacity`.
 * Callers choose the numbers, so a caller that chooses many fills up only its own key. A request with several limits is
 * checked once per limit and may exceed this by as many.
 */
export const STATED_WINDOWS_PER_KEY_MAX = 64;

/** The rule that `ruleId` states; undefined if it is an ordinary name. */
export function statedRule(ruleId: string): Rule | undefined {
  // Always the cluster's clock: with a timestamp of its own a caller could make nothing count. For that, configure a
  // rule.
  const stated = parseStatedRule(ruleId);
  if (stated !== undefined) return { id: ruleId, ...stated, clock: 'cluster' };
  const throttle = parseStatedThrottle(ruleId);
  if (throttle === undefined) return undefined;
  const { count: limit, periodMillis: windowMillis, maxBurst } = throttle;
  return { id: ruleId, limit, windowMillis, clock: 'cluster', meter: 'tokenBucket', burst: maxBurst + 1 };
}

/** Is it a stated throttle? All throttles of one key share one bucket, though each call may name other numbers. */
export function isThrottle({ id, meter }: Rule): boolean {
  return meter === 'tokenBucket' && parseStatedThrottle(id) !== undefined;
}
