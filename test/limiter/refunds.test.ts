/** A refund gives a remembered grant back, once, and its id grants nothing more. */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { encodeSweep, decodeCommand, mayBeSlow } from '../../src/limiter/log/command.ts';
import {
  chunksOf,
  entryOf,
  Harness,
  harnessWith,
  restoreInto,
  snapshotOf,
  START,
  tableOf,
} from './harness.ts';

const R1 = { userId: 'ada', requestId: 'r1' };
const DAY_MILLIS = 86_400_000;
const REFUND = { ask: 'refund', ...R1 } as const;

function keyStatus(harness: Harness): unknown {
  return harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'rule0' }, harness.nowMillis)?.limits[0];
}

describe('a refund', () => {
  it('gives back the granted cost, reports the grant, and has the same answer when repeated', () => {
    const harness = harnessWith({});
    const granted = harness.one({ ...R1, cost: 2 });
    const refunded = {
      allowed: false,
      ruleId: 'rule0',
      decided: granted.decided,
      refund: { refunded: true, cost: 2 },
    };
    expect(harness.one(REFUND)).toMatchObject(refunded);
    expect(keyStatus(harness)).toMatchObject({ remaining: 3, retryAfterMillis: 0, resetMillis: 0 });
    harness.one({ userId: 'ada' });
    expect(harness.one(REFUND)).toMatchObject(refunded);
    expect(keyStatus(harness)).toMatchObject({ remaining: 2 });
  });

  it('of an unknown grant, or of another user, changes nothing', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one(R1);
    harness.one({ userId: 'ada', requestId: 'denied' });
    const before = harness.machine.hash();
    for (const other of [{ requestId: 'denied' }, { requestId: 'none' }, { userId: 'bob' }]) {
      const { allowed, refund, decided } = harness.one({ ...REFUND, ...other });
      expect([allowed, refund]).toEqual([false, { refunded: false, cost: 0 }]);
      expect(decided).toMatchObject({ index: harness.index, position: 0, timeMillis: START });
    }
    expect(harness.machine.hash()).toBe(before);
  });

  it('makes its id grant nothing, to a retry or another request, until it is forgotten', () => {
    const harness = harnessWith({});
    harness.rules(tableOf(2, [{}], { requestIdHorizonMillis: 20_000 }));
    harness.one(R1);
    harness.one(REFUND);
    expect(harness.one(R1)).toMatchObject({ allowed: false, refusal: 'refunded' });
    expect(harness.machine.isRemembered(R1)).toBe(true);
    expect(harness.one({ ...R1, cost: 2 })).toMatchObject({ refusal: 'request_id_reused' });
    expect(keyStatus(harness)).toMatchObject({ remaining: 3 });
    harness.nowMillis += 20_000;
    expect(harness.one(R1)).toMatchObject({ refusal: 'refunded' });
    harness.nowMillis += 1;
    expect(harness.one(REFUND).refund).toEqual({ refunded: false, cost: 0 });
    expect(harness.one(R1)).toMatchObject({ allowed: true });
  });

  it.each([
    { meter: 'slidingLog' },
    { meter: 'slidingLog', granularityMillis: 1_000 },
    { meter: 'fixedWindow' },
    { meter: 'slidingCounter' },
  ] as const)(
    'of a grant ahead of group time ends the wait of its key, and frees nothing else: %s',
    (how) => {
      const harness = harnessWith({ ...how, limit: 3, windowMillis: DAY_MILLIS, clock: 'request' });
      harness.one({ userId: 'ada' });
      expect(harness.one({ ...R1, timestampMillis: harness.nowMillis + 58_000 }).allowed).toBe(true);
      expect(harness.one({ userId: 'ada' }).allowed).toBe(false);
      harness.one(REFUND);
      const grants = [1, 2, 3].map(() => harness.one({ userId: 'ada' }).allowed);
      expect(grants).toEqual([true, true, false]);
    },
  );

  it('of a grant far ahead brings back grants that had left the window there, and counts in group time', () => {
    const harness = harnessWith({ limit: 2, windowMillis: 1_000, clock: 'request' });
    harness.one({ userId: 'ada' });
    expect(harness.one({ ...R1, timestampMillis: harness.nowMillis + 58_000 }).allowed).toBe(true);
    harness.one(REFUND);
    expect([1, 2].map(() => harness.one({ userId: 'ada' }).allowed)).toEqual([true, false]);
  });

  it('is applied in the order of its entry', () => {
    const harness = harnessWith({ limit: 1 });
    const [first, refund, again] = harness.ask(R1, REFUND, { userId: 'ada' });
    expect([first?.allowed, refund?.refund?.refunded, again?.allowed]).toEqual([true, true, true]);
  });

  it('subtracts its cost from the grants of the same millisecond, and keeps the others', () => {
    const harness = harnessWith({ limit: 5 });
    harness.ask({ userId: 'ada', cost: 2 }, { ...R1, cost: 3 });
    expect(keyStatus(harness)).toMatchObject({ remaining: 0 });
    harness.one(REFUND);
    expect(keyStatus(harness)).toMatchObject({ remaining: 3, resetMillis: 1_001 });
  });

  it('of the newest grant does not turn the time of its key back', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one({ userId: 'ada', timestampMillis: START - 5_000 });
    harness.one({ ...R1, timestampMillis: START });
    harness.one(REFUND);
    // The grant at -5000 was forgotten when the one at 0 was made. It would count here.
    const { allowed, decided } = harness.one({ userId: 'ada', timestampMillis: START - 4_500 });
    expect([allowed, decided.timeMillis]).toEqual([true, START]);
  });

  it('of a grant that left its window, or whose key was forgotten, succeeds and gives nothing back', () => {
    const harness = harnessWith({ limit: 2 });
    harness.one(R1);
    harness.nowMillis += 2_000;
    harness.machine.apply(decodeCommand(encodeSweep()), harness.next());
    expect(harness.machine.stats().keys).toBe(0);
    harness.one({ userId: 'ada' });
    expect(harness.one(REFUND).refund?.refunded).toBe(true);
    expect(keyStatus(harness)).toMatchObject({ remaining: 1 });
  });

  it('works for a key whose rule has left the table', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one(R1);
    harness.rules(tableOf(2, [{ id: 'other' }]));
    expect(harness.one(REFUND).refund?.refunded).toBe(true);
    harness.rules(tableOf(3, [{ limit: 1 }]));
    expect(harness.allows('ada')).toBe(true);
  });

  it('does not change the wait for the grants that still count', () => {
    const harness = harnessWith({ limit: 2 });
    harness.one({ userId: 'ada' });
    harness.nowMillis += 100;
    harness.one(R1);
    expect(keyStatus(harness)).toMatchObject({ retryAfterMillis: 901, resetMillis: 1_001 });
    harness.one(REFUND);
    expect(keyStatus(harness)).toMatchObject({ remaining: 1, retryAfterMillis: 0, resetMillis: 901 });
  });

  it('survives a snapshot: no second refund, and the id grants nothing', () => {
    const harness = harnessWith({ limit: 4 });
    harness.ask({ ...R1, cost: 2 }, { userId: 'ada', cost: 2 });
    harness.one(REFUND);
    const other = new Harness();
    other.index = harness.index;
    restoreInto(other.machine, snapshotOf(harness.machine));
    expect(other.machine.hash()).toBe(harness.machine.hash());
    expect([...other.machine.inspect()]).toEqual([...harness.machine.inspect()]);
    expect(other.one(REFUND).refund?.refunded).toBe(true);
    expect(keyStatus(other)).toMatchObject({ remaining: 2 });
    expect(other.one({ ...R1, cost: 2 })).toMatchObject({ refusal: 'refunded' });
  });

  it('is not part of a snapshot that was begun before it', () => {
    const harness = harnessWith({ limit: 10_000 });
    harness.rules(tableOf(2, [{ limit: 10_000 }], { requestIdHorizonMillis: 20_000 }));
    const ids = Array.from({ length: 3_000 }, (_, i) => ({ userId: 'ada', requestId: `r${i}` }));
    harness.ask(...ids);
    const before = [...harness.machine.inspect()];
    const writer = harness.machine.snapshot();
    const first = writer.next();
    harness.ask(...ids.filter((_, i) => i % 3 > 0).map((id) => ({ ask: 'refund' as const, ...id })));
    // Grants that the snapshot has not written yet are copied before they are dropped.
    harness.nowMillis += 20_001;
    for (let i = 0; i < 4; i += 1) {
      const command = decodeCommand(encodeSweep());
      harness.machine.apply(command, harness.next());
    }
    const other = new Harness();
    restoreInto(other.machine, [first!, ...chunksOf(writer)]);
    expect([...other.machine.inspect()]).toEqual(before);
  });

  it('round-trips through an entry, which counts as slow to apply', () => {
    const mixed: readonly AllowRequest[] = [{ userId: 'bob', ruleId: 'r' }, { userId: 'ada' }];
    const bytes = entryOf([REFUND, ...mixed]);
    expect(decodeCommand(bytes)).toMatchObject({ type: 'allow', batch: { size: 3 } });
    expect([bytes, entryOf(mixed)].map((each) => mayBeSlow(each))).toEqual([true, false]);
  });
});
