/** A refund reaches the meter that counted the grant, and gives nothing back if that meter no longer knows it. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, tableOf } from './harness.ts';

const REFUND = { ask: 'refund', userId: 'ada', requestId: 'r1' } as const;
const METERS: readonly Partial<Rule>[] = [
  { meter: 'slidingLog' },
  { granularityMillis: 100 },
  { meter: 'slidingCounter' },
  { meter: 'fixedWindow' },
  { meter: 'tokenBucket' },
  { meter: 'leakyBucket', burst: 10, queue: 10 },
];
const SLOW = { limit: 10, windowMillis: 60_000, clock: 'cluster' } as const;

function remaining({ machine, nowMillis }: Harness): number | undefined {
  return machine.peek({ ask: 'peek', userId: 'ada' }, nowMillis)?.limits[0]?.remaining;
}

/** A key that was granted 4 under an id and 3 without. */
function granted(rule: Partial<Rule>): Harness {
  const harness = harnessWith({ ...SLOW, ...rule });
  harness.ask({ userId: 'ada', requestId: 'r1', cost: 4 }, { userId: 'ada', cost: 3 });
  return harness;
}

function restoredFrom(before: Harness): Harness {
  const after = new Harness();
  restoreInto(after.machine, snapshotOf(before.machine));
  after.index = before.index;
  after.nowMillis = before.nowMillis;
  expect(after.machine.hash()).toBe(before.machine.hash());
  return after;
}

describe.each(METERS)('a refund of %j', (rule) => {
  const capacity = rule.queue === undefined ? 10 : 20;

  it('gives back the granted cost, once, and no cost of other grants', () => {
    const harness = granted(rule);
    expect(remaining(harness)).toBe(capacity - 7);
    for (let i = 0; i < 2; i += 1) {
      expect(harness.one(REFUND).refund).toEqual({ refunded: true, cost: 4 });
      expect(remaining(harness)).toBe(capacity - 3);
    }
  });

  it('for all grants leaves an empty key whose time does not run back, and which survives a snapshot', () => {
    const harness = harnessWith({ ...SLOW, ...rule });
    harness.one({ userId: 'ada', requestId: 'r1', cost: 4 });
    harness.one(REFUND);
    expect(remaining(harness)).toBe(capacity);
    expect(remaining(restoredFrom(harness))).toBe(capacity);
  });

  it('gives nothing back when the grant no longer counts', () => {
    const harness = harnessWith({ ...SLOW, ...rule });
    harness.rules(tableOf(2, [{ ...SLOW, ...rule }], { requestIdHorizonMillis: 1_000_000 }));
    harness.one({ userId: 'ada', requestId: 'r1', cost: 4 });
    harness.nowMillis += 200_000;
    harness.one({ userId: 'ada', cost: 3 });
    harness.one(REFUND);
    expect(remaining(harness)).toBe(capacity - 3);
  });

  it('reaches the meter that counted the grant when another is in force, also after a snapshot', () => {
    for (const other of METERS.slice(0, 5)) {
      const harness = granted(rule);
      harness.rules(tableOf(2, [{ ...SLOW, ...other }]));
      // With the same timestamp, under the other meter.
      harness.one({ userId: 'ada', cost: 2 });
      const isSame = JSON.stringify(other) === JSON.stringify(rule);
      for (const each of [restoredFrom(harness), harness]) {
        expect(remaining(each)).toBe(1);
        each.one(REFUND);
        const isAnother = rule.meter === 'leakyBucket' && other.meter === 'tokenBucket';
        expect([isSame, isAnother, remaining(each)]).toEqual([isSame, isAnother, isAnother ? 1 : 5]);
      }
    }
  });

  it('gives back a grant from before a rule change if a log counted it, and nothing for other meters', () => {
    const harness = granted(rule);
    harness.rules(tableOf(2, [{ ...SLOW, ...rule, limit: 9, clock: 'request' }]));
    const before = remaining(harness) ?? 0;
    harness.one(REFUND);
    expect(remaining(harness)).toBe(before + (rule.meter === 'slidingLog' ? 4 : 0));
  });
});

describe('a refund of a bucket', () => {
  it('gives back the cost that did not drain between its grant and the newest one', () => {
    const harness = harnessWith({ ...SLOW, limit: 60, meter: 'tokenBucket' });
    harness.one({ userId: 'ada', requestId: 'r1', cost: 10 });
    harness.nowMillis += 4_000;
    harness.one({ userId: 'ada', cost: 50 });
    expect(remaining(harness)).toBe(3);
    // Four drain per configured window; in group time a little less.
    harness.one(REFUND);
    expect(remaining(harness)).toBe(9);
  });

  it('never grants more than the burst and the tokens that flowed in, even if every grant is refunded late', () => {
    const harness = harnessWith({ ...SLOW, limit: 60, burst: 5, meter: 'tokenBucket' });
    const start = harness.nowMillis;
    let kept = 0;
    for (let i = 0; i < 200; i += 1) {
      harness.nowMillis = start + i * 300;
      const requestId = `r${i}`;
      const isGranted = harness.one({ userId: 'ada', requestId, cost: 1 + (i % 3) }).allowed;
      if (isGranted) kept += 1 + (i % 3);
      const before = harness.one({ ...REFUND, requestId: `r${i - 5}` });
      if (before.refund?.refunded === true) kept -= before.refund.cost;
      expect(kept).toBeLessThanOrEqual(5 + (i * 300) / 1_000);
    }
  });
});
