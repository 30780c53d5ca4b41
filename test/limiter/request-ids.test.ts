/** A request id belongs to one request: to all of its fields. */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const first: AllowRequest = { userId: 'ada', ruleId: 'a', cost: 2, timestampMillis: START, requestId: 'q' };
const others: readonly [string, AllowRequest, unknown][] = [
  ['rule', { ...first, ruleId: 'b' }, 'a'],
  ['rule', { userId: 'ada', cost: 2, timestampMillis: START, requestId: 'q' }, 'a'],
  ['cost', { ...first, cost: 1 }, 2],
  ['cost', { userId: 'ada', ruleId: 'a', timestampMillis: START, requestId: 'q' }, 2],
  ['timestampMillis', { ...first, timestampMillis: START + 1 }, START],
  ['timestampMillis', { userId: 'ada', ruleId: 'a', cost: 2, requestId: 'q' }, START],
];

function twoRules(): Harness {
  return harnessWith({ id: 'a', limit: 5 }, { id: 'b', limit: 5 });
}

describe('a request id reused with another rule, cost or timestamp', () => {
  it.each(others)('is not answered from memory and charges nothing: another %s', (field, other, value) => {
    const harness = twoRules();
    harness.one(first);
    const before = harness.machine.hash();
    const conflict = { allowed: false, refusal: 'request_id_reused', conflict: { field, first: value } };
    expect(harness.one(other)).toMatchObject({ ...conflict, limit: 0, remaining: 0, retryAfterMillis: 0 });
    expect(harness.machine.isRemembered(other)).toBe(true);
    expect(harness.machine.hash()).toBe(before);
    expect(harness.one(first)).toMatchObject({ allowed: true, remaining: 3 });
  });

  it.each(others)(
    'is refused within one entry too, and the first is granted: another %s',
    (_field, other) => {
      const harness = twoRules();
      const [granted, refused, again] = harness.ask(first, other, first);
      expect(granted).toMatchObject({ allowed: true, decided: { position: 0 } });
      expect(refused).toMatchObject({ refusal: 'request_id_reused', decided: { position: 1 } });
      expect(again).toEqual(granted);
      expect(harness.machine.stats()).toEqual({ keys: 1, grants: 1, requestIds: 1, customers: 0 });
    },
  );

  it('distinguishes a timestamp of 0 from none, and a retry with 0 is answered from memory', () => {
    const harness = twoRules();
    const early = { ...first, timestampMillis: 0 };
    const granted = harness.one(early);
    expect(granted.allowed).toBe(true);
    expect(harness.one(early)).toEqual(granted);
    const { timestampMillis: _, ...without } = early;
    expect(harness.one(without)).toMatchObject({ refusal: 'request_id_reused' });
  });

  it('is refused after a snapshot, too', () => {
    const harness = twoRules();
    const granted = harness.one(first);
    const restored = new Harness();
    restoreInto(restored.machine, snapshotOf(harness.machine));
    restored.index = harness.index;
    for (const [field, other] of others) {
      expect(restored.one(other)).toMatchObject({ conflict: { field } });
    }
    expect(restored.one(first)).toEqual(granted);
  });

  it('is refused, not denied, even when nothing is left', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one({ userId: 'ada', requestId: 'q' });
    const other = { userId: 'ada', requestId: 'q', cost: 2 };
    expect(harness.machine.quickDenial(other, START)).toBeUndefined();
    expect(harness.one(other).refusal).toBe('request_id_reused');
  });

  it('is a new request once the first is forgotten, or if the first was denied', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one({ userId: 'ada', requestId: 'q' });
    harness.nowMillis += 120_001;
    const other = { userId: 'ada', requestId: 'q', timestampMillis: harness.nowMillis };
    expect(harness.one(other).allowed).toBe(true);
    expect(harness.one({ userId: 'ada', requestId: 'denied' }).allowed).toBe(false);
    harness.nowMillis += 1_001;
    expect(harness.one({ ...other, requestId: 'denied', timestampMillis: harness.nowMillis }).allowed).toBe(
      true,
    );
  });
});

describe('a retry', () => {
  it('may state a cost of 1 or leave it out', () => {
    const harness = harnessWith({ limit: 5 });
    const granted = harness.one({ userId: 'ada', requestId: 'q' });
    expect(harness.one({ userId: 'ada', requestId: 'q', cost: 1 })).toEqual(granted);
    expect(harness.machine.stats().grants).toBe(1);
  });

  it('gets its answer even if the rules, and the default rule, have changed since', () => {
    const harness = harnessWith({ id: 'a', limit: 5 });
    const asked = { userId: 'ada', requestId: 'q' };
    const granted = harness.one(asked);
    harness.rules(tableOf(2, [{ id: 'b', limit: 1 }]));
    expect(harness.one(asked)).toEqual(granted);
    expect(granted.ruleId).toBe('a');
  });

  it('finds its answer among expired ones of the same key', () => {
    const harness = harnessWith({ limit: 100 });
    harness.rules(tableOf(2, [{ limit: 100 }], { requestIdHorizonMillis: 100 }));
    const asked = { userId: 'ada', requestId: 'q' };
    // Live grants are in front of the expired ones, so nothing is swept.
    harness.rules(tableOf(3, [{ limit: 100 }], { requestIdHorizonMillis: 86_400_000 }));
    harness.one({ userId: 'bob', requestId: 'lives' });
    harness.rules(tableOf(4, [{ limit: 100 }], { requestIdHorizonMillis: 100 }));
    let granted = harness.one(asked);
    for (let i = 0; i < 5; i += 1) {
      harness.nowMillis += 101;
      granted = harness.one(asked);
    }
    expect(harness.machine.stats().requestIds).toBe(7);
    const restored = new Harness();
    restoreInto(restored.machine, snapshotOf(harness.machine));
    expect(restored.machine.stats()).toEqual(harness.machine.stats());
    restored.nowMillis = harness.nowMillis;
    restored.index = harness.index;
    for (const each of [harness, restored]) expect(each.one(asked)).toEqual(granted);
  });
});

describe('a receipt', () => {
  it('has the position within the entry, so that every grant has its own', () => {
    const harness = harnessWith({ limit: 100 });
    const users = Array.from({ length: 20 }, (_, i) => ({ userId: `user${i % 4}` }));
    const decisions = [...harness.ask(...users), ...harness.ask(...users)];
    const receipts = decisions.map(({ decided }) => `${decided.index}/${decided.position}`);
    expect(new Set(receipts).size).toBe(40);
    expect(decisions.map(({ decided }) => decided.position)).toEqual([...users.keys(), ...users.keys()]);
  });

  it('of a denial by the log has a position too; that of a quick denial has none', () => {
    const harness = harnessWith({ limit: 1 });
    const denied = harness.ask({ userId: 'ada' }, { userId: 'ada' }, { userId: 'ada', ruleId: 'none' });
    expect(denied.map(({ decided }) => decided.position)).toEqual([0, 1, 2]);
    expect(harness.machine.quickDenial({ userId: 'ada' }, START)?.decided).toEqual({
      term: 1,
      index: 2,
      timeMillis: START,
    });
  });

  it('is the same for a retry, also after a snapshot', () => {
    const harness = harnessWith({ limit: 9 });
    const asked = { userId: 'ada', requestId: 'q' };
    const [, , granted] = harness.ask({ userId: 'bob' }, { userId: 'bob' }, asked);
    expect(granted?.decided.position).toBe(2);
    const restored = new Harness();
    restoreInto(restored.machine, snapshotOf(harness.machine));
    restored.index = harness.index;
    expect(restored.one(asked)).toEqual(granted);
  });
});
