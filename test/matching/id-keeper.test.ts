/**
 * Tests which key keeps the id of a request: the same one for any order of the rules, so that a retry finds
 * its grant.
 */
import { describe, expect, it } from 'vitest';
import type { MatchedLimit } from '../../src/matching/matched-limit.ts';
import { partsOfRequest } from '../../src/matching/part-outcome.ts';
import { Bench, ruleSetOf, decision, FROM } from './bench.ts';

/** The partition of the user's key, and the one of all other keys. */
function partitionOf(key: string): number {
  return Number(!key.startsWith('user='));
}

/** The key that is asked under the id, if the rules are in this order. */
function keeperOf(rules: readonly string[], from: Readonly<Record<string, string>>): string {
  const bench = new Bench();
  bench.ruleSet = ruleSetOf(7, `rules: [${rules.join(', ')}]`);
  bench.ask(from, { requestId: 'r1' });
  for (let asked = 0; asked < bench.asked.length; asked += 1) bench.asked[asked]?.answer(decision());
  const [keeper, ...others] = bench.asked.filter(({ request }) => request.requestId === 'r1');
  expect(others).toEqual([]);
  return keeper?.request.userId ?? 'nobody';
}

describe('the id of a request', () => {
  const RULES = [
    '{ id: net, key: ip, windows: { limit: 9, per: minute } }',
    '{ id: user, key: user, windows: { limit: 9, per: minute } }',
    '{ id: both, key: [ip, user], windows: { limit: 9, per: minute } }',
    '{ id: all, key: [], windows: { limit: 9, per: minute } }',
  ];

  const user = RULES[1] ?? '';

  it('is kept by the same key for any order of the rules', () => {
    for (let i = 0; i < RULES.length; i += 1) {
      const rules = [...RULES.slice(i), ...RULES.slice(0, i)];
      for (const ordered of [rules, rules.toReversed()]) {
        expect(keeperOf(ordered, FROM)).toBe('user=ada');
        const withoutUser = ordered.filter((rule) => rule !== user);
        expect(keeperOf(withoutUser, FROM)).toBe('ip=10.0.0.1,user=ada');
        expect(keeperOf(ordered, { ip: '10.0.0.1' })).toBe('*');
      }
    }
  });

  it("would be kept by the same key in any partition, since the customer's partition becomes the first", () => {
    const limits = ['user=ada', 'ip=10.0.0.1', 'endpoint=/dear'].map(
      (userId) => ({ userId }) as MatchedLimit,
    );
    for (const ordered of [limits, limits.toReversed()]) {
      const firsts = partsOfRequest(ordered, partitionOf).map((part) => part.limits[0].userId);
      expect(firsts).toEqual(['user=ada', 'endpoint=/dear']);
    }
  });

  it('is kept by the key of the user when other rules are added or removed', () => {
    for (let i = 0; i < RULES.length; i += 1)
      expect(keeperOf([...new Set([...RULES.slice(i), user])], FROM)).toBe('user=ada');
  });
});
