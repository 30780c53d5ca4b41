/** Generators of random rules. */

export type Below = (bound: number) => number;

export const NAMES = ['user', 'customer', 'ip', 'tenant', 'tier', 'endpoint', 'method', 'region'];
export const VALUES = ['a', 'b', 'ab', 'abc', 'aba', '/a', '/a/b'];
const PATTERNS = [...VALUES, '*', 'a*', 'ab*', '/*', '/a/*'];

export function some<T>(below: Below, from: readonly T[], atMost: number): T[] {
  return [...new Set(Array.from({ length: below(atMost + 1) }, () => one(below, from)))];
}

export function one<T>(below: Below, from: readonly T[]): T {
  const chosen = from[below(from.length)];
  if (chosen === undefined) throw new Error('nothing to choose from');
  return chosen;
}

/** JSON, which is YAML. A rule replaces only rules after it, so there is no cycle. */
export function randomRules(below: Below): string {
  const count = 1 + below(30);
  const rules = Array.from({ length: count }, (_, i) => ({
    id: `r${i}`,
    match: Object.fromEntries(some(below, NAMES, 3).map((name) => [name, one(below, PATTERNS)])),
    key: some(below, NAMES, 2),
    windows: { limit: 1, per: 'day' },
    ...(below(6) === 0 && { priority: below(5) - 2 }),
    ...(below(4) === 0 && { group: `g${below(3)}` }),
    ...(below(6) === 0 && { shadow: true }),
    ...(below(8) === 0 && { enabled: false }),
    ...(below(5) === 0 && i + 1 < count && { replaces: [`r${i + 1 + below(count - i - 1)}`] }),
  }));
  return JSON.stringify({ rules });
}
