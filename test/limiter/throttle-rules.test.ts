/**
 * Stated throttles such as `30/60000ms+15`, used by `CL.THROTTLE`: the steps of redis-cell, one state per key for all
 * numbers, the requested rate, and the guarantee in real time. The model is a separate algorithm: one arrival time in
 * fractions of a millisecond.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { statedRuleId, statedThrottleId } from '../../src/api/stated-rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

type Numbers = readonly [maxBurst: number, count: number, periodSeconds: number];

function idOf([maxBurst, count, periodSeconds]: Numbers): string {
  return statedThrottleId({ maxBurst, count, periodMillis: periodSeconds * 1_000 });
}

function throttle(harness: Harness, numbers: Numbers, cost = 1): Decision {
  return harness.one({ userId: 'ada', ruleId: idOf(numbers), cost });
}

/**
 * The period in group time without drift: one millisecond for rounded timestamps, one for requests late in their
 * millisecond.
 */
function widened(periodMillis: number): number {
  return periodMillis + 2;
}

/**
 * The rule of redis-cell for one key: a request moves the arrival time forward, unless it would then be too far ahead.
 */
class Oracle {
  #arrivalMillis = 0;

  ask(nowMillis: number, [maxBurst, count, periodSeconds]: Numbers, cost: number): [boolean, number] {
    const interval = Math.ceil((widened(periodSeconds * 1_000) * 1e6) / count) / 1e6;
    const next = Math.max(this.#arrivalMillis, nowMillis) + cost * interval;
    // The request may have come at the very end of its millisecond.
    const allowed = next - (maxBurst + 1) * interval < nowMillis + 1 - 1e-5;
    if (allowed) this.#arrivalMillis = next;
    const owed = Math.max(0, this.#arrivalMillis - nowMillis);
    return [allowed, owed];
  }
}

describe('a throttle', () => {
  it('follows the documented example: 16 at once, then one every two seconds', () => {
    const harness = harnessWith({});
    const steps = Array.from({ length: 17 }, () => throttle(harness, [15, 30, 60]));
    const interval = widened(60_000) / 30;
    expect(steps.map(({ allowed, remaining, resetMillis }) => [allowed, remaining, resetMillis])).toEqual([
      ...Array.from({ length: 16 }, (_, i) => [true, 15 - i, Math.floor((i + 1) * interval)]),
      [false, 0, Math.floor(16 * interval)],
    ]);
    expect(steps.at(-1)?.retryAfterMillis).toBe(Math.floor(interval));
    for (let i = 0; i < 5; i += 1) {
      harness.nowMillis += 2_000;
      // The allowance for clocks adds a fifteenth of a millisecond to each interval here.
      const passed = [0, 1].map((millis) => {
        harness.nowMillis += millis;
        return throttle(harness, [15, 30, 60]).allowed;
      });
      expect(passed.filter(Boolean)).toHaveLength(1);
    }
  });

  it('has one state per key, which each call judges by its own numbers', () => {
    const harness = harnessWith({});
    expect(throttle(harness, [15, 30, 60], 16)).toMatchObject({ allowed: true, remaining: 0 });
    // 32 seconds are owed. Requests with these other numbers may owe at most 16: they wait until the rest has drained,
    // and one
    // more.
    const faster = throttle(harness, [15, 60, 60]);
    expect(faster).toMatchObject({ allowed: false, remaining: 0, resetMillis: 32_001 });
    expect(faster.retryAfterMillis).toBeGreaterThanOrEqual(17_000);
    expect(faster.retryAfterMillis).toBeLessThanOrEqual(17_001);
    // Requests with these numbers may owe 64.
    expect(throttle(harness, [31, 30, 60])).toMatchObject({ allowed: true, remaining: 15 });
    // Another key has another state, and so have other meters of this key.
    expect(harness.one({ userId: 'bob', ruleId: idOf([15, 60, 60]) }).allowed).toBe(true);
    expect(harness.one({ userId: 'ada', ruleId: statedRuleId(16, 60_000) }).allowed).toBe(true);
  });

  it('grants no more to a caller that uses 10,000 other numbers', () => {
    const harness = harnessWith({});
    const granted = Array.from({ length: 10_000 }, (_, i) => throttle(harness, [0, 1, 3_600 + i]).allowed);
    expect(granted.filter(Boolean)).toHaveLength(1);
    expect(harness.machine.stats().keys).toBe(1);
    expect(harness.one({ userId: 'bob', ruleId: idOf([0, 1, 1]) }).allowed).toBe(true);
  });

  it.each([1, 7, 50, 100, 200, 1_000, 5_000])(
    'grants %i a second, within 2 percent, with a burst of 0',
    (count) => {
      const harness = new Harness();
      harness.rules(tableOf(1, [{}], { clockDriftPpm: 500 }));
      const seconds = count === 1 ? 100 : 10;
      const request = { userId: 'ada', ruleId: idOf([0, count, 1]) };
      // Twice as many requests as the rate allows.
      const batch = Array.from({ length: Math.ceil((2 * count) / 1_000) }, () => request);
      let granted = 0;
      for (let millis = 0; millis < seconds * 1_000; millis += 1) {
        granted += harness.ask(...batch).filter(({ allowed }) => allowed).length;
        harness.nowMillis += 1;
      }
      expect(granted).toBeGreaterThanOrEqual(0.98 * count * seconds);
      expect(granted).toBeLessThanOrEqual(count * seconds + 1);
    },
  );

  it('never grants more than the burst and the rate in real time, on a clock that is too fast', () => {
    const numbers = fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 3 }));
    const gaps = fc.array(fc.double({ min: 0, max: 40, noNaN: true }), { minLength: 300, maxLength: 300 });
    fc.assert(
      fc.property(numbers, gaps, (asked, tries) => {
        const harness = new Harness();
        harness.rules(tableOf(1, [{}], { clockDriftPpm: 500 }));
        const grants: number[] = [];
        let trueMillis = 0;
        for (const gap of tries) {
          trueMillis += gap;
          harness.nowMillis = START + Math.floor(trueMillis * 1.0006);
          for (let i = 0; i < 4; i += 1) if (throttle(harness, asked).allowed) grants.push(trueMillis);
        }
        const [maxBurst, count, periodSeconds] = asked;
        let from = 0;
        for (const [i, end] of grants.entries()) {
          while (grants[from]! <= end - periodSeconds * 1_000) from += 1;
          expect(i - from + 1).toBeLessThanOrEqual(maxBurst + count);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('decides as redis-cell would, for any numbers and times', () => {
    const numbers = fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 5 }));
    const call = fc.record({ numbers, gap: fc.nat(2_500), cost: fc.integer({ min: 1, max: 3 }) });
    fc.assert(
      fc.property(fc.array(call, { maxLength: 80 }), (calls) => {
        const harness = harnessWith({});
        const oracle = new Oracle();
        for (const { numbers: asked, gap, cost } of calls) {
          harness.nowMillis += gap;
          const request = { userId: 'ada', ruleId: idOf(asked), cost };
          const atOnce = harness.machine.quickDenial(request, harness.nowMillis);
          const decision = harness.one(request);
          const [allowed, owed] = oracle.ask(harness.nowMillis, asked, cost);
          expect(decision.allowed).toBe(allowed);
          expect(Math.abs(decision.resetMillis - owed)).toBeLessThanOrEqual(1.001);
          expect(atOnce === undefined).toBe(allowed);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('grants a request that comes after the reported wait', () => {
    const numbers = fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 5 }));
    fc.assert(
      fc.property(numbers, numbers, (first, second) => {
        const harness = harnessWith({});
        for (let i = 0; i < 10; i += 1) throttle(harness, first);
        const { allowed, retryAfterMillis } = throttle(harness, second);
        if (allowed) return;
        expect(retryAfterMillis).toBeGreaterThan(0);
        harness.nowMillis += retryAfterMillis - 1;
        expect(throttle(harness, second).allowed).toBe(false);
        harness.nowMillis += 1;
        expect(throttle(harness, second).allowed).toBe(true);
      }),
    );
  });

  it('is forgotten when all has drained, not earlier, and leaves no trace', () => {
    const harness = harnessWith({ id: 'sweeper', limit: 100, windowMillis: 10 });
    const hashes = [harness.machine.hash()];
    throttle(harness, [3, 1, 2], 4);
    for (const millis of [8_007, 1]) {
      harness.nowMillis += millis;
      for (const _ of [1, 2]) harness.machine.apply({ type: 'sweep' }, harness.next());
      hashes.push(String(harness.machine.stats().keys));
    }
    expect(hashes.slice(1)).toEqual(['1', '0']);
    expect(throttle(harness, [3, 1, 2], 5).allowed).toBe(false);
    expect(harness.machine.stats().keys).toBe(0);
    expect(throttle(harness, [3, 1, 2], 4).allowed).toBe(true);
  });

  it('survives a snapshot, a change of the rules and a reset of another key', () => {
    const harness = harnessWith({});
    throttle(harness, [1, 1, 10], 2);
    harness.rules(tableOf(2, [{ limit: 1 }], { clockDriftPpm: 500 }));
    harness.say('bob', { type: 'reset' });
    const machine = new LimiterStateMachine(7);
    restoreInto(machine, snapshotOf(harness.machine));
    expect(machine.hash()).toBe(harness.machine.hash());
    for (const each of [harness.machine, machine]) {
      const request = { userId: 'ada', ruleId: idOf([1, 1, 10]) };
      expect(each.quickDenial(request, harness.nowMillis)).toMatchObject({ allowed: false, remaining: 0 });
    }
    harness.say('ada', { type: 'reset' });
    expect(throttle(harness, [1, 1, 10], 2).allowed).toBe(true);
  });

  it('refunds the cost that was certainly still owed', () => {
    const harness = harnessWith({});
    const ruleId = idOf([9, 1, 1]);
    harness.one({ userId: 'ada', ruleId, cost: 5, requestId: 'a' });
    harness.nowMillis += 2_000;
    harness.one({ userId: 'ada', ruleId, cost: 2 });
    harness.ask({ ask: 'refund', userId: 'ada', requestId: 'a' });
    // Two of the five may have drained before the two came: three are given back, and two remain.
    const { remaining } = throttle(harness, [9, 1, 1]);
    expect(remaining).toBe(6);
  });
});
