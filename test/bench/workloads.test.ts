/** Tests that the workloads draw the intended users, and the same ones for the same seed. */
import { describe, expect, test } from 'vitest';
import { seededUnit } from '../../bench/random.ts';
import {
  LOAD_RULES,
  type LoadRequest,
  type WorkloadId,
  workloadOf,
  WORKLOADS,
  zipfRanks,
} from '../../bench/workloads.ts';

const ALL = [...WORKLOADS.values()];
const RULES_OF = { grants: ['open'], denials: ['spent'], both: Object.keys(LOAD_RULES) };

function drawn(id: WorkloadId, seed: number, count: number): LoadRequest[] {
  return Array.from({ length: count }, workloadOf(id).chooser(seed));
}

function usersIn(requests: readonly LoadRequest[]): number {
  return new Set(requests.map(({ key }) => key)).size;
}

describe('workloads', () => {
  test.each(ALL)('$id: the same seed draws the same requests, another seed others', ({ id }) => {
    const first = drawn(id, 7, 1_000);
    expect(drawn(id, 7, 1_000)).toEqual(first);
    expect(drawn(id, 8, 1_000)).not.toEqual(first);
  });

  test.each(ALL)('$id: requests for grants have an open rule, requests for denials a spent one', (each) => {
    const rules = new Set(drawn(each.id, 1, 5_000).map(({ rule }) => rule));
    expect(RULES_OF[each.expects]).toEqual(expect.arrayContaining([...rules]));
  });

  test('no user has requests under two rules: the use under one must not count for another', () => {
    const requests = ALL.flatMap(({ id }) => drawn(id, 1, 20_000));
    const ruleOf = new Map(requests.map(({ key, rule }) => [key, rule]));
    expect(requests.filter(({ key, rule }) => ruleOf.get(key) !== rule)).toEqual([]);
  });

  test('mixed is one half of each', () => {
    const requests = drawn('mixed', 1, 20_000);
    const fraction = requests.filter(({ rule }) => rule === 'open').length / requests.length;
    expect(fraction).toBeGreaterThan(0.48);
    expect(fraction).toBeLessThan(0.52);
  });

  test('a million users are nearly all different, ten hot users are ten', () => {
    expect(usersIn(drawn('million', 1, 50_000))).toBeGreaterThan(47_000);
    expect(usersIn(drawn('abuse', 1, 50_000))).toBe(10);
  });

  test('with Zipf the second user asks half as often as the first, and all users ask', () => {
    const next = zipfRanks(seededUnit(1), 100, 1);
    const counts = Array.from({ length: 100 }, () => 0);
    for (let i = 0; i < 200_000; i += 1) counts[next()]! += 1;
    expect((counts[0] ?? 0) / (counts[1] ?? 1)).toBeGreaterThan(1.9);
    expect((counts[0] ?? 0) / (counts[1] ?? 1)).toBeLessThan(2.1);
    expect(Math.min(...counts)).toBeGreaterThan(0);
  });
});
