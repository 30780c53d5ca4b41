/** A limit that rules find for a request: one window of a rule that applies, with the key and the cost that it counts. Pure. */
import type { FurtherLimit } from '../api/request.ts';
import type { Unmatched } from '../api/unmatched.ts';
import { windowRuleId } from '../rules/window-id.ts';
import type { AppliedRule } from '../rules/match.ts';
import type { LimitWindow, RuleDefinition } from '../rules/rule-definition.ts';

export interface MatchedLimit extends FurtherLimit {
  readonly cost: number;
  readonly rule: RuleDefinition;
  readonly window: LimitWindow;
}

export interface MatchedLimits {
  readonly kind: 'limits';
  /** In the order of the rules; none: nothing limits the request. */
  readonly enforced: readonly MatchedLimit[];
  /** Of each rule on trial that applies: its windows. They are decided and counted, and deny nothing. */
  readonly onTrial: readonly (readonly MatchedLimit[])[];
  /** If no rule matches the request: what the document does with such requests. No partition is asked for a grant then. */
  readonly unmatched?: Unmatched | undefined;
}

/** Every request asks for them. */
const IDS = new WeakMap<RuleDefinition, readonly string[]>();

/** The ids under which the limiter keeps the windows of a rule, in their order. */
export function windowIdsOf(rule: RuleDefinition): readonly string[] {
  const known = IDS.get(rule) ?? rule.windows.map((window) => windowRuleId(rule, window));
  IDS.set(rule, known);
  return known;
}

/** @param asked cost of the request */
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
