/**
 * The form of rules wherever they are written, in an entry and in a snapshot: which values, in which order. How a value
 * becomes bytes is for those to say; what it may be, for `rules.ts`.
 */

import { type Rule, RULE_CLOCKS } from '../api/rule.ts';
import { type RuleTable, validateRule, validateRuleTable } from './rules.ts';

/** All values are written: one that is missing is damage, not a wish for the default. */
const MISSING = NaN;

/** First the id, then integers >= 0. */
export function ruleValues({ id, limit, windowMillis, clock }: Rule): readonly [string, ...number[]] {
  return [id, limit, windowMillis, RULE_CLOCKS.indexOf(clock)];
}

/** How many integers follow the id of a rule. */
export const RULE_INTEGERS = 3;

/** @throws InvalidRuleError unless they are the values of a rule */
export function ruleOf(values: readonly unknown[]): Rule {
  return validateRule(ruleFields(values), 'rule');
}

function ruleFields([id, limit, windowMillis, clock]: readonly unknown[]): Record<keyof Rule, unknown> {
  const named = typeof clock === 'number' ? RULE_CLOCKS[clock] : undefined;
  return { id, limit, windowMillis, clock: named ?? MISSING };
}

/** Do they say the same? */
export function areSameRule(a: Rule, b: Rule): boolean {
  const others = ruleValues(b);
  return ruleValues(a).every((value, i) => value === others[i]);
}

/** Integers >= 0, its version first. The rules come apart. */
export function tableValues(table: RuleTable): readonly number[] {
  const { version, requestIdHorizonMillis, clockDriftPpm, partitionBytesMax } = table;
  return [version, requestIdHorizonMillis, clockDriftPpm, partitionBytesMax];
}

/** How many values a table has without its rules. */
export const TABLE_INTEGERS = 4;

/**
 * @param rules the values of each
 * @throws InvalidRuleError unless they are the values of a table
 */
export function ruleTableOf(values: readonly unknown[], rules: readonly (readonly unknown[])[]): RuleTable {
  const [version, requestIdHorizonMillis, clockDriftPpm, partitionBytesMax] = values;
  return validateRuleTable({
    version,
    requestIdHorizonMillis: requestIdHorizonMillis ?? MISSING,
    clockDriftPpm: clockDriftPpm ?? MISSING,
    partitionBytesMax: partitionBytesMax ?? MISSING,
    rules: rules.map(ruleFields),
  });
}
