/** Tests the counts per rule and minute, across gaps, clock steps, and more rules than there are rows. */
import { beforeEach, describe, expect, it } from 'vitest';
import fc from 'fast-check';
import {
  OTHER_RULES,
  STATED_RULES,
  USAGE_COLUMNS,
  USAGE_MINUTES_MAX,
  USAGE_OUTCOMES,
} from '../../src/api/usage.ts';
import { UsageTable } from '../../src/usage/usage-table.ts';

/** Not a multiple of the length of any slot. */
const NOW = 29_000_007;
const ALL = { minutes: USAGE_MINUTES_MAX, top: 0 };

let table: UsageTable;

beforeEach(() => {
  table = new UsageTable(3);
  table.turnTo(NOW);
});

function grant(times: number, rule = 'a'): void {
  for (let i = 0; i < times; i += 1) table.decided(rule, true, 'ada');
}

function counts(query = ALL, untilMinute = NOW): Record<string, readonly number[]> {
  return Object.fromEntries(
    table
      .usage(query, untilMinute)
      .rules.map((rule) => [rule.ruleId, rule.counts.slice(0, USAGE_OUTCOMES.length)]),
  );
}

/** The number of grants in each minute. */
function granted(minutes: number, untilMinute: number): number[] {
  return table
    .usage({ minutes, top: 0 }, untilMinute)
    .history.filter((_, at) => at % USAGE_COLUMNS.length === 0);
}

describe('the answers', () => {
  it('are counted by rule and outcome, without empty rows', () => {
    grant(2);
    table.decided('a', false, 'bob');
    table.decided('b', false, 'bob');
    expect(counts()).toEqual({ a: [2, 1, 0, 0], b: [0, 1, 0, 0] });
    expect(counts({ ...ALL, ruleId: 'b' } as typeof ALL)).toEqual({ b: [0, 1, 0, 0] });
    expect([...table.totals()]).toContainEqual(['a', 'allowed', 2]);
  });

  it('by stated rules are counted together', () => {
    for (let i = 1; i <= 2_000; i += 1) table.decided(`${i}/1000ms`, true, 'ada');
    table.undecided('7/1000ms');
    expect(counts()).toEqual({ [STATED_RULES]: [2_000, 0, 1, 0] });
  });

  it('by a rule in force count under its name, even if that has the form of a stated rule', () => {
    table.setRules(['5/1000ms', OTHER_RULES]);
    table.decided('5/1000ms', true, 'ada');
    table.decided(OTHER_RULES, true, 'ada');
    expect(counts()).toEqual({ '5/1000ms': [1, 0, 0, 0], [OTHER_RULES]: [1, 0, 0, 0] });
  });

  it('without a decision are counted under the rule that was named, if there is one', () => {
    table.undecided(undefined);
    table.setRules(['a', 'b']);
    table.undecided(undefined);
    table.undecided('b');
    table.undecided('any text');
    table.unread(5);
    expect(counts()).toEqual({ [OTHER_RULES]: [0, 0, 7, 0], a: [0, 0, 1, 0], b: [0, 0, 1, 0] });
  });

  it('by fail modes are counted separately, under a rule in force or with the others', () => {
    table.setRules(['a']);
    table.degraded('a');
    table.degraded('a');
    table.degraded('gone');
    expect(counts()).toEqual({ a: [0, 0, 0, 2], [OTHER_RULES]: [0, 0, 0, 1] });
    expect([...table.totals()]).toContainEqual(['a', 'degraded', 2]);
  });

  it('by shadow rules are counted separately, under the rule', () => {
    table.tried('a', false);
    table.tried('a', true);
    table.tried('a', false);
    const [usage] = table.usage(ALL, NOW).rules;
    expect(usage).toEqual({ ruleId: 'a', counts: [0, 0, 0, 0, 1, 2] });
    expect([...table.totals()]).toContainEqual(['a', 'wouldDeny', 2]);
  });

  it('of rules beyond the maximum are counted together, until one was idle for a day', () => {
    for (const rule of ['a', 'b', 'c', 'd']) grant(1, rule);
    expect(counts()).toEqual({
      a: [1, 0, 0, 0],
      b: [1, 0, 0, 0],
      c: [1, 0, 0, 0],
      [OTHER_RULES]: [1, 0, 0, 0],
    });
    table.turnTo(NOW + USAGE_MINUTES_MAX);
    grant(1, 'd');
    expect(counts(ALL, NOW + USAGE_MINUTES_MAX)).toEqual({ d: [1, 0, 0, 0] });
    for (const rule of ['e', 'a', 'f', 'e', 'a']) grant(1, rule);
    expect(counts(ALL, NOW + USAGE_MINUTES_MAX)).toEqual({
      d: [1, 0, 0, 0],
      e: [2, 0, 0, 0],
      a: [2, 0, 0, 0],
      [OTHER_RULES]: [1, 0, 0, 0],
    });
    expect(
      Object.fromEntries([...table.totals()].map(([rule, , count]) => [rule, count])),
    ).not.toHaveProperty('b');
  });
});

describe('the history', () => {
  it('has each minute at its position, and zeros for a gap', () => {
    grant(1);
    table.turnTo(NOW + 1);
    grant(2);
    table.turnTo(NOW + 4);
    grant(3);
    expect(granted(6, NOW + 4)).toEqual([0, 1, 2, 0, 0, 3]);
    expect(granted(2, NOW + 1)).toEqual([1, 2]);
  });

  it('drops a minute after a day, even if nothing was counted for long', () => {
    grant(1);
    table.turnTo(NOW + USAGE_MINUTES_MAX - 1);
    expect(granted(USAGE_MINUTES_MAX, NOW + USAGE_MINUTES_MAX - 1)[0]).toBe(1);
    expect(granted(USAGE_MINUTES_MAX, NOW + USAGE_MINUTES_MAX)).not.toContain(1);
    table.turnTo(NOW + 5 * USAGE_MINUTES_MAX);
    grant(2);
    expect(granted(1, NOW + 5 * USAGE_MINUTES_MAX)).toEqual([2]);
  });

  it('continues in the same minutes when the clock steps back, and shows no later ones', () => {
    grant(1);
    table.turnTo(NOW + 2);
    grant(5);
    table.turnTo(NOW);
    grant(1);
    expect(granted(3, NOW)).toEqual([0, 0, 2]);
    table.turnTo(NOW + 2);
    expect(granted(3, NOW + 2)).toEqual([2, 0, 5]);
  });

  it('never shows a count under another minute, for any steps of the clock', () => {
    const step = fc.record({
      by: fc.oneof(
        fc.integer({ min: -5, max: 5 }),
        fc.constantFrom(-4_000, -1_440, 59, 1_439, 1_440, 1_441, 9_999),
      ),
      grants: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        table = new UsageTable(3);
        const inMinute = new Map<number, number>();
        /** By slot: the last minute that was counted there. */
        const owner = new Map<number, number>();
        let minute = NOW;
        for (const { by, grants } of steps) {
          minute += by;
          table.turnTo(minute);
          const slot = minute % USAGE_MINUTES_MAX;
          if (owner.get(slot) !== minute) inMinute.delete(owner.get(slot) ?? -1);
          owner.set(slot, minute);
          grant(grants);
          inMinute.set(minute, (inMinute.get(minute) ?? 0) + grants);
        }
        const expected = Array.from(
          { length: USAGE_MINUTES_MAX },
          (_, i) => inMinute.get(minute + 1 - USAGE_MINUTES_MAX + i) ?? 0,
        );
        expect(granted(USAGE_MINUTES_MAX, minute)).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });
});

describe('the keys that are granted and denied most', () => {
  const TOP = { minutes: 1, top: 5 };
  /** The first minute of an hour. */
  const HOUR = 60 * 483_334;

  it('are listed by rule, and only on request', () => {
    grant(2);
    grant(1, 'b');
    table.decided('b', false, 'bob');
    expect(table.usage(TOP, NOW)).toMatchObject({
      allowed: {
        keys: [
          { rule: 'a', key: 'ada', count: 2, error: 0 },
          { rule: 'b', key: 'ada', count: 1, error: 0 },
        ],
      },
      denied: { keys: [{ rule: 'b', key: 'bob', count: 1, error: 0 }] },
    });
    expect(table.usage({ ...TOP, ruleId: 'b' }, NOW).allowed.keys).toHaveLength(1);
    expect(table.usage(ALL, NOW).allowed.keys).toEqual([]);
  });

  it('are those of the current and the previous hour', () => {
    const count = (): number | undefined => table.usage(TOP, NOW).allowed.keys[0]?.count;
    table.turnTo(HOUR);
    grant(1);
    table.turnTo(HOUR + 60);
    grant(2);
    expect(count()).toBe(3);
    expect(table.usage(TOP, NOW).topFromMinute).toBe(HOUR);
    table.turnTo(HOUR + 120);
    expect(count()).toBe(2);
    table.turnTo(HOUR + 300);
    expect(count()).toBeUndefined();
  });
});
