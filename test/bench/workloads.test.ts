import { describe, expect, test } from 'vitest';
import { seededUnit } from '../../bench/random.ts';
import { LOAD_RULES, type LoadRequest, WORKLOADS, zipfRanks } from '../../bench/workloads.ts';

function drawn(next: () => LoadRequest, count: number): LoadRequest[] {
  return Array.from({ length: count }, next);
}

const ALL = [...WORKLOADS.values()];

describe('workloads', () => {
  test.each(ALL)('$id: the same seed asks the same, another one something else', ({ chooser }) => {
    const first = drawn(chooser(7), 1_000);
    expect(drawn(chooser(7), 1_000)).toEqual(first);
    expect(drawn(chooser(8), 1_000)).not.toEqual(first);
  });

  test.each(ALL)(
    '$id: only rules that there are, of which grants never reach one',
    ({ chooser, expects }) => {
      const rules = new Set(drawn(chooser(1), 5_000).map(({ rule }) => rule));
      for (const rule of rules) expect(Object.keys(LOAD_RULES)).toContain(rule);
      if (expects === 'grants') expect([...rules]).toEqual(['open']);
      if (expects === 'denials') expect([...rules]).toEqual(['spent']);
    },
  );

  test('no user is asked for under two rules: what is spent under one must not count for another', () => {
    const ruleOf = new Map<string, string>();
    for (const { chooser } of ALL)
      for (const { key, rule } of drawn(chooser(1), 20_000)) {
        expect(ruleOf.get(key) ?? rule).toBe(rule);
        ruleOf.set(key, rule);
      }
  });

  test('mixed is one half of each', () => {
    const requests = drawn(WORKLOADS.get('mixed')!.chooser(1), 20_000);
    const share = requests.filter(({ rule }) => rule === 'open').length / requests.length;
    expect(share).toBeGreaterThan(0.48);
    expect(share).toBeLessThan(0.52);
  });

  test('a million users are nearly all different, ten hot users are ten', () => {
    const users = (id: 'million' | 'abuse'): number =>
      new Set(drawn(WORKLOADS.get(id)!.chooser(1), 50_000).map(({ key }) => key)).size;
    expect(users('million')).toBeGreaterThan(47_000);
    expect(users('abuse')).toBe(10);
  });

  test('by the law of Zipf the second asks half as often as the first, and all of them do', () => {
    const next = zipfRanks(seededUnit(1), 100, 1);
    const counts = new Array<number>(100).fill(0);
    for (let i = 0; i < 200_000; i += 1) counts[next()]! += 1;
    expect((counts[0] ?? 0) / (counts[1] ?? 1)).toBeGreaterThan(1.9);
    expect((counts[0] ?? 0) / (counts[1] ?? 1)).toBeLessThan(2.1);
    expect(Math.min(...counts)).toBeGreaterThan(0);
  });
});
