/**
 * Decides which rule of a group applies: the one with the higher priority, then the more specific one. Rules that
 * are equal in both apply together, so the stricter one decides.
 */
import type { Condition, RuleDefinition } from './rule-definition.ts';
import { isPattern } from './value-pattern.ts';

/**
 * Weight of a condition by its descriptor: one that names a single caller is the most specific, one that names a
 * class of callers the least.
 */
const RANKS: ReadonlyMap<string, number> = new Map([
  ['user', 3],
  ['customer', 3],
  ['apiKey', 3],
  ['ip', 3],
  ['tenant', 1],
  ['tier', 0],
]);
/** Weight of the endpoint, the method and all other descriptors. */
const OTHER_RANK = 2;
const HIGHEST_RANK = 3;

/**
 * The specificity of conditions, to be compared from left to right. For each rank, highest first: number of exact
 * values, number of prefixes, their total length, number of `*` conditions.
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

/**
 * The precedence of a rule in its group: numbers to be compared from left to right. The greater one applies; equal
 * ones both do.
 */
export function precedence({ priority, scope }: RuleDefinition): readonly number[] {
  return [priority, ...specificity(scope.kind === 'descriptors' ? scope.conditions : [])];
}

/** Compares lexicographically. Above 0 if `a` is greater. */
export function compareNumbers(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((number, i) => number !== b[i]);
  return differing === -1 ? 0 : (a[differing] ?? 0) - (b[differing] ?? 0);
}

/** Sorts patterns, the most specific first: exact values, then longer patterns. */
export function byPattern(a: string, b: string): number {
  return Number(isPattern(a)) - Number(isPattern(b)) || b.length - a.length;
}
