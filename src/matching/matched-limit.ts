/**
 * A matched limit: one window of a rule that applies to a request, with the key and the cost that it counts. Pure
 * functions.
 */
import type { FurtherLimit } from '../api/request.ts';
import type { Unmatched } from '../api/refusals.ts';
import { type LimitWindow, type RuleDefinition, windowRuleId } from '../rules/rule-definition.ts';
import type { AppliedRule } from '../rules/match.ts';

/** One window of a rule, with the key (`userId`) and the cost of the request under it. */
export interface MatchedLimit extends FurtherLimit {
  readonly cost: number;
  readonly rule: RuleDefinition;
  readonly window: LimitWindow;
}

/** All limits of one request. */
export interface MatchedLimits {
  readonly kind: 'limits';
  /** Limits that can deny, in the order of the rules. Empty: nothing limits the request. */
  readonly enforced: readonly MatchedLimit[];
  /** The windows of each shadow rule that applies. They are decided and counted, and deny nothing. */
  readonly shadowed: readonly (readonly MatchedLimit[])[];
  /**
   * Set if no rule matches the request: what the rules do with such requests. No partition is asked for a grant
   * then.
   */
  readonly unmatched?: Unmatched | undefined;
}

/** Cached, as every request needs the ids. */
const IDS = new WeakMap<RuleDefinition, readonly string[]>();

/** The ids under which the limiter stores the windows of a rule, in the order of the windows. */
export function windowIdsOf(rule: RuleDefinition): readonly string[] {
  const known = IDS.get(rule) ?? rule.windows.map((window) => windowRuleId(rule, window));
  IDS.set(rule, known);
  return known;
}

/** The limits of a request under one rule. @param asked cost of the request; the rule may multiply it */
export function windowsOf({ rule, key, cost }: AppliedRule, asked: number): readonly MatchedLimit[] {
  const ids = windowIdsOf(rule);
  return rule.windows.map((window, i) => ({
    userId: key,
    ruleId: ids[i]!,
    cost: cost * asked,
    rule,
    window,
  }));
}
