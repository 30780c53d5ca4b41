/** Compares the index with a matcher that tries every rule, on random rules, and counts its work. */
import { describe, expect, it } from 'vitest';
import { RuleMatcher } from '../../src/rules/match.ts';
import { forEachSeed, seeded, someSeeds } from '../raft/seeded.ts';
import { naiveMatch, naivePath } from './naive-matcher.ts';
import { type Below, NAMES, one, randomRules, some, VALUES } from './random-rules.ts';
import { rulesOf } from './read.ts';

function randomPaths(below: Below): string {
  const values = ['a', 'b', 'ab', 'aab', 'aba', 'a*', '*b', '*', 'a*b', '*a*', undefined];
  const level = (depth: number): unknown[] => {
    const seen = new Set<string>();
    return Array.from({ length: 1 + below(6) }, () => {
      const key = one(below, ['k', 'l']);
      const value = values[below(values.length)];
      const identity = `${key} ${value ?? 'any'}${value === undefined ? '' : '='}`;
      if (seen.has(identity)) return undefined;
      seen.add(identity);
      return {
        key,
        value,
        ...(below(3) > 0 && { rate_limit: { unit: 'day', requests_per_unit: below(9) } }),
        ...(depth < 3 && below(2) === 0 && { descriptors: level(depth + 1) }),
      };
    }).filter((step) => step !== undefined);
  };
  return JSON.stringify({ domain: 'd', descriptors: level(0) });
}

describe('the index', () => {
  it('finds the same rules as a matcher that tries every rule', () => {
    let applied = 0;
    const seeds = someSeeds(30, 20);
    forEachSeed(seeds, (seed) => {
      const below = seeded(seed);
      const rules = rulesOf(randomRules(below));
      const matcher = new RuleMatcher(rules);
      for (let i = 0; i < 40; i += 1) {
        const names = some(below, NAMES, 8);
        const request = new Map(names.map((name) => [name, below(12) === 0 ? '' : one(below, VALUES)]));
        const matching = matcher.match(request);
        if (matching.kind !== 'rules') throw new Error('no key');
        const found = matching.applied.map(({ rule }) => rule.id);
        expect(found).toEqual(naiveMatch(rules, request).map(({ id }) => id));
        applied += found.length;
      }
    });
    expect(applied).toBeGreaterThan(50 * seeds.length);
  });

  it('finds the same path as a matcher that tries every rule', () => {
    let applied = 0;
    const seeds = someSeeds(38, 12);
    forEachSeed(seeds, (seed) => {
      const below = seeded(seed);
      const rules = rulesOf(randomPaths(below));
      const matcher = new RuleMatcher(rules);
      for (let i = 0; i < 60; i += 1) {
        const entries = Array.from(
          { length: 1 + below(4) },
          () => [one(below, ['k', 'l']), one(below, ['a', 'b', 'ab', 'aab', 'aba', 'bb'])] as const,
        );
        const matching = matcher.matchLists('d', [entries.map(([key, value]) => ({ key, value }))]);
        if (matching.kind !== 'rules') throw new Error('no key');
        expect(matching.applied[0]?.[0]?.rule.id).toBe(naivePath(rules, 'd', entries)?.id);
        if (matching.applied[0]?.[0] !== undefined) applied += 1;
      }
    });
    expect(applied).toBeGreaterThan(5 * seeds.length);
  });
});

/** The most reads that a thousand matches may take, each of a few rules. */
const CHECKS_MAX = 20_000;

/** Returns how often a thousand matches read the descriptors of a request, once for each rule that is tried. */
function peeksAt(matcher: RuleMatcher, request: Record<string, string>): number {
  const descriptors = new Map(Object.entries(request));
  let peeks = 0;
  const watched = new Proxy(descriptors, {
    get(target, property) {
      peeks += 1;
      const value: unknown = Reflect.get(target, property);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  for (let i = 0; i < 1_000; i += 1) matcher.match(watched);
  return peeks;
}

function matcherOf(rules: readonly string[]): RuleMatcher {
  return new RuleMatcher(rulesOf(`rules: [${rules.join()}]`));
}

describe('one request among thousands of rules', () => {
  it('costs as much as the rules that could match, even if the others have conditions in common with them', () => {
    const windows = 'windows: {limit: 1, per: day}';
    // All rules have the same endpoint; the customer distinguishes them.
    const rules = Array.from(
      { length: 3_000 },
      (_, i) => `{id: r${i}, key: user, match: {endpoint: /a, customer: c${i}}, ${windows}}`,
    );
    const matcher = matcherOf(rules);
    expect(peeksAt(matcher, { user: 'ada', endpoint: '/a', customer: 'c17' })).toBeLessThan(CHECKS_MAX);
    expect(peeksAt(matcher, { user: 'ada', endpoint: '/a', customer: 'other' })).toBeLessThan(CHECKS_MAX);
    const prefixes = Array.from(
      { length: 3_000 },
      (_, i) => `{id: r${i}, key: user, match: {endpoint: /a/${i}/*}, ${windows}}`,
    );
    expect(peeksAt(matcherOf(prefixes), { user: 'ada', endpoint: '/a/17/b' })).toBeLessThan(CHECKS_MAX);
  });
});
