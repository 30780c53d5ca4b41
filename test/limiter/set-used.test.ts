/** An operator sets how much of a rule a key has used: from then on only that counts, and no earlier grant. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { decodeCommand, encodeSweep } from '../../src/limiter/log/command.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { type Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const RULE = 'rule0';

const METERS: readonly [string, Partial<Rule>][] = [
  ['a log', {}],
  ['a log of granules', { granularityMillis: 100 }],
  ['a counter', { meter: 'slidingCounter' }],
  ['a fixed window', { meter: 'fixedWindow' }],
  ['a token bucket', { meter: 'tokenBucket', burst: 20 }],
  ['a leaky bucket', { meter: 'leakyBucket', burst: 5, queue: 15 }],
];

function set(harness: Harness, userId: string, used: number, ...ruleIds: string[]): Decision {
  return harness.say(userId, { type: 'set', used, ruleIds: ruleIds.length === 0 ? [RULE] : ruleIds });
}

/** The remaining cost at this moment. */
function left(harness: Harness, userId: string, ruleId = RULE): number {
  const keyStatus = harness.machine.peek({ ask: 'peek', userId, ruleId }, harness.nowMillis);
  return keyStatus!.limits[0]!.remaining;
}

describe.each(METERS)('under %s', (_, meter) => {
  const rule: Partial<Rule> = { limit: 20, windowMillis: 1_000, clock: 'cluster', ...meter };

  it('leaves as much as the operator sets, regardless of earlier grants', () => {
    for (const granted of [0, 1, 20]) {
      for (const used of [0, 1, 7, 20]) {
        const harness = harnessWith(rule);
        if (granted > 0) harness.one({ userId: 'ada', cost: granted });
        harness.nowMillis += 10;
        expect(set(harness, 'ada', used).customer).toMatchObject({ isDone: true });
        expect(left(harness, 'ada')).toBe(20 - used);
        expect(harness.one({ userId: 'ada', cost: 20 - used + 1 }).allowed).toBe(false);
        expect(used === 20 || harness.one({ userId: 'ada', cost: 20 - used }).allowed).toBe(true);
      }
    }
  });

  it('makes the key like a new one that was granted the usage', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 1, max: 6 })), { maxLength: 12 }),
        fc.nat(20),
        fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 1, max: 6 })), { maxLength: 12 }),
        (before, used, after) => {
          const harness = harnessWith(rule);
          for (const [millis, cost] of before) {
            harness.nowMillis += millis;
            harness.one({ userId: 'ada', cost });
          }
          harness.nowMillis += 1;
          set(harness, 'ada', used);
          if (used > 0) harness.one({ userId: 'new', cost: used });
          for (const [millis, cost] of after) {
            harness.nowMillis += millis;
            const [ada, other] = harness.ask({ userId: 'ada', cost }, { userId: 'new', cost });
            expect({ ...ada, decided: 0 }).toEqual({ ...other, decided: 0 });
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('decides the same on a replica restored from a snapshot in between', () => {
    for (const used of [0, 6]) {
      const harness = harnessWith(rule);
      for (const cost of [1, 2, 3]) {
        harness.nowMillis += 5;
        harness.one({ userId: 'ada', cost });
      }
      set(harness, 'ada', used);
      const restored = harnessWith(rule);
      restoreInto(restored.machine, snapshotOf(harness.machine));
      expect(restored.machine.hash()).toBe(harness.machine.hash());
      restored.index = harness.index;
      restored.nowMillis = harness.nowMillis;
      for (const one of [harness, restored]) one.one({ userId: 'ada', cost: 4 });
      expect(restored.machine.hash()).toBe(harness.machine.hash());
      expect(left(restored, 'ada')).toBe(20 - used - 4);
    }
  });

  it('makes a window that is new to the key inherit no forgotten grants', () => {
    const other: Partial<Rule> = { ...rule, id: 'both/other', of: 'both', windowMillis: 60_000 };
    const inheriting: Partial<Rule> = { ...rule, id: 'both/heir', of: 'both' };
    for (const millis of [0, 1, 500]) {
      for (const used of [0, 3]) {
        const harness = harnessWith(other);
        harness.nowMillis += 1;
        harness.one({ userId: 'ada', cost: 12 });
        harness.rules(tableOf(2, [other, inheriting]));
        // Also in the millisecond in which it comes into force.
        harness.nowMillis += millis;
        expect(left(harness, 'ada', 'both/heir')).toBeLessThan(20);
        set(harness, 'ada', used, 'both/heir');
        harness.nowMillis += 1;
        expect(left(harness, 'ada', 'both/heir')).toBe(20 - used);
        expect(harness.one({ userId: 'ada', ruleId: 'both/heir', cost: 20 - used }).allowed).toBe(true);
        expect(left(harness, 'ada', 'both/other')).toBe(8);
      }
    }
  });
});

describe('a usage that an operator sets', () => {
  const rule: Partial<Rule> = { limit: 10, windowMillis: 1_000, clock: 'cluster' };

  it('leaves the window like a grant made at that time', () => {
    const harness = harnessWith(rule);
    harness.nowMillis += 500;
    set(harness, 'ada', 10);
    harness.nowMillis += 1_000;
    expect(harness.allows('ada')).toBe(false);
    harness.nowMillis += 1;
    expect(harness.allows('ada')).toBe(true);
  });

  it('counts under all windows that are named, and under no other', () => {
    const harness = harnessWith(rule, { ...rule, limit: 100 }, rule);
    for (const ruleId of ['rule0', 'rule1', 'rule2']) harness.one({ userId: 'ada', ruleId, cost: 9 });
    set(harness, 'ada', 4, 'rule0', 'rule1');
    expect(['rule0', 'rule1', 'rule2'].map((id) => left(harness, 'ada', id))).toEqual([6, 96, 1]);
    expect(left(harness, 'bob')).toBe(10);
  });

  it('also replaces the grants that a former meter knows', () => {
    const harness = harnessWith(rule);
    harness.one({ userId: 'ada', cost: 9 });
    harness.rules(tableOf(2, [{ ...rule, meter: 'slidingCounter' }]));
    expect(left(harness, 'ada')).toBe(1);
    set(harness, 'ada', 2);
    expect(left(harness, 'ada')).toBe(8);
  });

  it('must not exceed the limit of the key; otherwise nothing changes', () => {
    const harness = harnessWith(rule, { ...rule, limit: 5 });
    harness.one({ userId: 'ada', cost: 3 });
    expect(set(harness, 'ada', 11)).toMatchObject({ ruleId: RULE, usedMax: 10, customer: { isDone: false } });
    // One window has a limit below the usage.
    expect(set(harness, 'ada', 6, 'rule0', 'rule1')).toMatchObject({ ruleId: 'rule1', usedMax: 5 });
    expect(left(harness, 'ada')).toBe(7);
    harness.say('ada', { type: 'put', overrides: [{ ruleId: RULE, limit: 50 }] });
    expect(set(harness, 'ada', 50).usedMax).toBeUndefined();
    expect(left(harness, 'ada')).toBe(0);
  });

  it('must name rules in force; otherwise nothing changes', () => {
    const harness = harnessWith(rule);
    harness.one({ userId: 'ada', cost: 3 });
    for (const ruleId of ['none', '10/1000ms'])
      expect(set(harness, 'ada', 0, RULE, ruleId)).toMatchObject({ refusal: 'unknown_rule', ruleId });
    expect(left(harness, 'ada')).toBe(7);
  });

  it('cannot be refunded, and makes earlier grants not refundable', () => {
    const harness = harnessWith(rule);
    harness.one({ userId: 'ada', cost: 3, requestId: 'one' });
    set(harness, 'ada', 5);
    harness.ask({ ask: 'refund', userId: 'ada', requestId: 'one' });
    expect(left(harness, 'ada')).toBe(5);
  });

  it('does not change the customer record', () => {
    const harness = harnessWith(rule);
    const { customer } = harness.say('ada', { type: 'put', tier: 'pro', overrides: [] });
    expect(set(harness, 'ada', 3).customer).toEqual({ isDone: true, record: customer!.record });
  });

  it('is refused with at_capacity if there is no room for the key', () => {
    const harness = harnessWith(rule);
    harness.rules(tableOf(2, [rule], { partitionBytesMax: 4_096 }));
    for (let i = 0; i < 40; i += 1) harness.one({ userId: `user${i}` });
    expect(set(harness, 'stranger', 0).refusal).toBe('at_capacity');
    expect(set(harness, 'user1', 7).customer?.isDone).toBe(true);
    expect(left(harness, 'user1')).toBe(3);
  });

  it('counts from group time, regardless of the timestamps of grants', () => {
    const harness = harnessWith({ ...rule, clock: 'request' });
    harness.one({ userId: 'ada', cost: 10, timestampMillis: START + 30_000 });
    set(harness, 'ada', 10);
    harness.nowMillis += 1_001;
    expect(harness.allows('ada')).toBe(true);
  });

  it('does not let the sweep skip the last key', () => {
    const harness = harnessWith({ ...rule, windowMillis: 100 });
    for (let i = 0; i < 50; i += 1) harness.one({ userId: `user${i}` });
    for (let i = 0; i < 50; i += 1) set(harness, `user${i}`, i % 3);
    harness.nowMillis += 1_000;
    harness.machine.apply(decodeCommand(encodeSweep()), harness.next());
    expect(harness.machine.stats().keys).toBe(0);
  });
});
