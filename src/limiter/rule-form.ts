/**
 * The fields of a rule and of a rule table as lists of values, in the order in which log entries and snapshots write
 * them. The writers turn values into bytes; `rules.ts` validates them.
 */

import { type Rule, RULE_CLOCKS, RULE_METERS } from '../api/rule.ts';
import { type RuleTable, validateAnyRule, validateRuleTable } from './rules.ts';

/** Every value is written. A missing one means damage, so it must not turn into a default: NaN fails the validation. */
const MISSING = NaN;

/**
 * The id, then `RULE_INTEGERS` integers >= 0. The first of these is the length of `of`, which is a prefix of the id. An
 * absent optional field is 0.
 */
export function ruleValues(rule: Rule): readonly [string, ...number[]] {
  const { id, of, limit, windowMillis, clock, meter, granularityMillis, calendar, burst, queue } = rule;
  return [
    id,
    of?.length ?? 0,
    limit,
    windowMillis,
    RULE_CLOCKS.indexOf(clock),
    meter === undefined ? 0 : RULE_METERS.indexOf(meter),
    granularityMillis ?? 0,
    calendar === undefined ? 0 : 1,
    burst ?? 0,
    queue ?? 0,
  ];
}

/** How many integers follow the id of a rule. */
export const RULE_INTEGERS = 9;

/** The rule with these values, configured or stated. @throws InvalidRuleError if they are not the values of a rule */
export function ruleOf(values: readonly unknown[]): Rule {
  return validateAnyRule(ruleFields(values), 'rule');
}

function ruleFields(values: readonly unknown[]): Record<keyof Rule, unknown> {
  const [id, ofLength, limit, windowMillis, clock, meter, granularityMillis, calendar, burst, queue] = values;
  return {
    id,
    of: beginning(id, ofLength),
    limit,
    windowMillis,
    clock: named(RULE_CLOCKS, clock),
    meter: named(RULE_METERS, meter),
    granularityMillis: optional(granularityMillis),
    calendar: calendar === 1 ? 'month' : optional(calendar),
    burst: optional(burst),
    queue: optional(queue),
  };
}

function named(names: readonly string[], place: unknown): unknown {
  return (typeof place === 'number' ? names[place] : undefined) ?? MISSING;
}

function beginning(id: unknown, length: unknown): unknown {
  if (length === 0) return undefined;
  const isSound = typeof id === 'string' && typeof length === 'number' && length <= id.length;
  return isSound ? id.slice(0, length) : MISSING;
}

function optional(value: unknown): unknown {
  return value === 0 ? undefined : (value ?? MISSING);
}

/** Are the two rules equal in every field? */
export function areSameRule(a: Rule, b: Rule): boolean {
  const others = ruleValues(b);
  return ruleValues(a).every((value, i) => value === others[i]);
}

/** Integers >= 0, the version first. The rules are written separately. */
export function tableValues(table: RuleTable): readonly number[] {
  const { version, requestIdHorizonMillis, clockDriftPpm, partitionBytesMax } = table;
  return [version, requestIdHorizonMillis, clockDriftPpm, partitionBytesMax];
}

/** How many values a table has without its rules. */
export const TABLE_INTEGERS = 4;

/**
 * The rule table with these values.
 *
 * @param rules the values of each rule
 * @throws InvalidRuleError if they are not the values of a table
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
