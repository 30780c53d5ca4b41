/** Describes rules in words for people. */
import {
  LIKE_ITS_RULE,
  type LimitWindow,
  partName,
  type RuleDefinition,
  type Scope,
  UNIT_MILLIS,
} from './rule-definition.ts';
import { isForUnmatched } from './unmatched.ts';

/** A rule in words, such as `100 per minute and 10,000 per day by customer, where tier is free`. */
export function ruleInWords(rule: RuleDefinition): string {
  const where = conditionsInWords(rule.scope);
  const { enabled, shadow, named } = rule;
  const states = [
    ...(enabled ? [] : ['not enabled']),
    ...(shadow ? ['in shadow'] : []),
    ...(named === true ? ['asked by name'] : []),
  ];
  const state = states.length === 0 ? '' : ` (${states.join(', ')})`;
  if (isForUnmatched(rule)) return `requests that no rule matches are denied${state}`;
  return `${limitsInWords(rule)} ${keyInWords(rule.scope)}${where === '' ? '' : `, ${where}`}${state}`;
}

/** The limits, such as `100 per minute and 10,000 per day`. */
export function limitsInWords({ unlimited, windows }: RuleDefinition): string {
  return unlimited ? 'unlimited' : windows.map(windowInWords).join(' and ');
}

/** One window, such as `100 per minute (peak)`. */
export function windowInWords({ limit, windowMillis, name }: LimitWindow): string {
  const isNamed = name !== undefined && name !== LIKE_ITS_RULE;
  return `${number(limit)} ${lengthInWords(windowMillis)}${isNamed ? ` (${name})` : ''}`;
}

/** The length of a window, such as `per minute` or `in 90,000 ms`. */
export function lengthInWords(windowMillis: number): string {
  const unit = Object.entries(UNIT_MILLIS).find(([, millis]) => millis === windowMillis);
  return unit === undefined ? `in ${number(windowMillis)} ms` : `per ${unit[0]}`;
}

/** The key of a rule in words, such as `by customer and endpoint`. */
export function keyInWords(scope: Scope): string {
  const names =
    scope.kind === 'descriptors'
      ? scope.key.map(partName)
      : scope.steps.filter(({ isCounted }) => isCounted).map(({ name }) => name);
  return names.length === 0 ? 'for all together' : `by ${names.join(' and ')}`;
}

/** The conditions, such as `where tier is free`. Empty: every request. */
export function conditionsInWords(scope: Scope): string {
  if (scope.kind === 'path') {
    const steps = scope.steps.map(({ name, value }) => (value === undefined ? name : `${name}=${value}`));
    return `for ${steps.join(', ')} in ${scope.domain}`;
  }
  const conditions = scope.conditions.map(({ name, value }) => `${name} is ${value}`);
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
}

/** A number with thousands separators, such as `10,000`. */
export function number(value: number): string {
  return String(value).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}
