/**
 * Which of two rules of a group is the one to apply: the one of the higher priority, then the more specific one. Rules that
 * are equal in both apply together, so that what is undecided is decided by the stricter one.
 */
import type { Condition, RuleDefinition } from './rule-definition.ts';
import { isPattern } from './value-pattern.ts';

/** Descriptors that name one caller say most; those that name whom it belongs to, least. */
const RANKS: ReadonlyMap<string, number> = new Map([
  ['user', 3],
  ['customer', 3],
  ['apiKey', 3],
  ['ip', 3],
  ['tenant', 1],
  ['tier', 0],
]);
/** The endpoint, the method, and every other descriptor. */
const OTHER_RANK = 2;
const HIGHEST_RANK = 3;

/**
 * How specific some conditions are, to be compared from left to right. For each rank of descriptors, the highest first: how
 * many exact values, how many beginnings of values, how long those are, how many that may have any value.
 */
function specificity(conditions: readonly Condition[]): readonly number[] {
  const numbers: number[] = [];
  for (let rank = HIGHEST_RANK; rank >= 0; rank -= 1) {
    const values = conditions
      .filter(({ name }) => (RANKS.get(name) ?? OTHER_RANK) === rank)
      .map(({ value }) => value);
    const beginnings = values.filter((value) => isPattern(value) && value !== '*');
    const length = beginnings.reduce((sum, value) => sum + value.length - 1, 0);
    const exact = values.filter((value) => !isPattern(value)).length;
    numbers.push(exact, beginnings.length, length, values.length - exact - beginnings.length);
  }
  return numbers;
}

/** What a rule is compared by with others of its group, from left to right: the greater one applies, equal ones both do. */
export function standing({ priority, scope }: RuleDefinition): readonly number[] {
  return [priority, ...specificity(scope.kind === 'descriptors' ? scope.conditions : [])];
}

/** Above 0 if `a` is greater. */
export function compareNumbers(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((number, i) => number !== b[i]);
  return differing === -1 ? 0 : (a[differing] ?? 0) - (b[differing] ?? 0);
}

/** The most specific of the patterns that fit a value comes first: the exact one, then the longest. */
export function byPattern(a: string, b: string): number {
  return Number(isPattern(a)) - Number(isPattern(b)) || b.length - a.length;
}
