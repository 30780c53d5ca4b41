/**
 * Customer commands of operators on one key: overrides, a block, the version that guards requests, and a reset.
 */
import { describe, expect, it } from 'vitest';
import type { LimitOverride } from '../../src/api/customer-record.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, tableOf } from './harness.ts';

const CLUSTER: Partial<Rule> = { id: 'r', limit: 5, windowMillis: 1_000, clock: 'cluster' };

function put(harness: Harness, userId: string, ...overrides: LimitOverride[]): Decision {
  return harness.say(userId, { type: 'put', overrides });
}

/** How many of `count` requests are granted. */
function granted(harness: Harness, count: number, userId = 'ada', ruleId = 'r'): number {
  const answers = harness.ask(...Array.from({ length: count }, () => ({ userId, ruleId })));
  return answers.filter(({ allowed }) => allowed).length;
}

function recordOf(harness: Harness, userId: string): unknown {
  return harness.say(userId, { type: 'read' }).customer?.record;
}

describe('a customer record', () => {
  it('has the index of its entry as version, and changes only if it has the version in the command', () => {
    const harness = harnessWith(CLUSTER);
    const first = harness.say('ada', { type: 'put', tier: 'pro', overrides: [], ifVersion: 0 });
    expect(first.customer).toEqual({
      isDone: true,
      record: { version: harness.index, tier: 'pro', overrides: [], isBlocked: false },
    });
    const before = harness.machine.hash();
    const other = harness.say('ada', { type: 'put', tier: 'free', overrides: [], ifVersion: 1 });
    expect(other.customer).toEqual({ isDone: false, record: first.customer?.record });
    expect(harness.say('ada', { type: 'delete', ifVersion: 99 }).customer?.isDone).toBe(false);
    expect(harness.machine.hash()).toBe(before);
    expect(recordOf(harness, 'bob')).toEqual({ version: 0, overrides: [], isBlocked: false });
  });

  it('never gets an earlier version again, even if it was deleted in between', () => {
    const harness = harnessWith(CLUSTER);
    const versions = [1, 2, 3].map(() => {
      const { customer } = harness.say('ada', { type: 'put', tier: 'pro', overrides: [] });
      harness.say('ada', { type: 'delete' });
      return customer?.record.version;
    });
    expect(new Set(versions).size).toBe(3);
    expect(recordOf(harness, 'ada')).toMatchObject({ version: 0 });
  });

  it('counts its texts for the cap; a record beyond the cap is refused and changes nothing', () => {
    const harness = harnessWith(CLUSTER);
    harness.rules(tableOf(2, [CLUSTER], { partitionBytesMax: 4_096 }));
    const empty = harness.machine.stateBytes;
    for (let i = 0; i < 40; i += 1) harness.say(`user${i}`, { type: 'put', tier: 'pro', overrides: [] });
    const full = harness.machine.hash();
    expect(harness.say('one more', { type: 'put', tier: 'pro', overrides: [] }).refusal).toBe('at_capacity');
    expect(harness.machine.hash()).toBe(full);
    expect(harness.machine.stateBytes).toBeLessThanOrEqual(4_096 + 1_024);
    for (let i = 0; i < 40; i += 1) harness.say(`user${i}`, { type: 'delete' });
    expect(harness.machine.stateBytes).toBe(empty);
  });
});

describe('an override', () => {
  it('applies from its entry on, lower or higher than the rule, and earlier grants count', () => {
    const harness = harnessWith(CLUSTER);
    expect(granted(harness, 4)).toBe(4);
    put(harness, 'ada', { ruleId: 'r', limit: 3 });
    expect(harness.one({ userId: 'ada', ruleId: 'r' })).toMatchObject({
      allowed: false,
      limit: 3,
      remaining: 0,
    });
    expect(granted(harness, 9, 'bob')).toBe(5);
    put(harness, 'ada', { ruleId: 'r', limit: 6 });
    expect(granted(harness, 9)).toBe(2);
    harness.say('ada', { type: 'delete' });
    expect(harness.one({ userId: 'ada', ruleId: 'r' })).toMatchObject({ allowed: false, limit: 5 });
  });

  it('gives the same quick denial as the log, and reports a cost that can never fit', () => {
    const harness = harnessWith(CLUSTER);
    put(harness, 'ada', { ruleId: 'r', limit: 2 });
    const bound = { maxAheadMillis: 0, nowMillis: () => harness.nowMillis };
    expect(harness.machine.inadmissible({ userId: 'ada', ruleId: 'r', cost: 3 }, bound)?.field).toBe('cost');
    expect(harness.machine.inadmissible({ userId: 'bob', ruleId: 'r', cost: 3 }, bound)).toBeUndefined();
    granted(harness, 2);
    expect(harness.machine.quickDenial({ userId: 'ada', ruleId: 'r' }, harness.nowMillis)).toMatchObject({
      allowed: false,
      limit: 2,
    });
    expect(
      harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'r' }, harness.nowMillis),
    ).toMatchObject({
      limits: [{ limit: 2, remaining: 0 }],
    });
  });

  it('also replaces the burst of a bucket, and a slower bucket is remembered for longer', () => {
    const harness = harnessWith({ ...CLUSTER, limit: 100, burst: 200, meter: 'tokenBucket' });
    put(harness, 'ada', { ruleId: 'r', limit: 1, burst: 10 });
    expect(granted(harness, 20)).toBe(10);
    // By its rule the key is free again after two seconds, by its override after ten.
    harness.nowMillis += 4_000;
    for (let i = 0; i < 8; i += 1) granted(harness, 1, `other${i}`);
    expect(granted(harness, 20)).toBe(3);
  });

  it("lets no refund give back a bucket's grant under another override", () => {
    const harness = harnessWith({ ...CLUSTER, meter: 'tokenBucket' });
    harness.one({ userId: 'ada', ruleId: 'r', cost: 5, requestId: '1' });
    put(harness, 'ada', { ruleId: 'r', limit: 1, burst: 5 });
    harness.one({ ask: 'refund', userId: 'ada', requestId: '1' });
    expect(granted(harness, 5)).toBe(0);
  });

  it('also applies to an earlier meter of its rule', () => {
    const harness = harnessWith({ ...CLUSTER, limit: 10, meter: 'tokenBucket' });
    put(harness, 'ada', { ruleId: 'r', limit: 1, burst: 10 });
    expect(granted(harness, 10)).toBe(10);
    harness.rules(tableOf(2, [{ ...CLUSTER, limit: 10 }]));
    put(harness, 'ada', { ruleId: 'r', limit: 10 });
    expect(granted(harness, 10)).toBe(0);
  });
});

describe('a block', () => {
  it('denies every request of its key, in the log and as a quick denial, reports no end, and remembers no ids', () => {
    const harness = harnessWith(CLUSTER);
    harness.say('ada', { type: 'block', isBlocked: true });
    const before = harness.machine.hash();
    const denial = { allowed: false, isBlocked: true, retryAfterMillis: 0, remaining: 0 };
    expect(harness.one({ userId: 'ada', ruleId: 'r', requestId: '1' })).toMatchObject(denial);
    expect(harness.machine.quickDenial({ userId: 'ada', ruleId: 'r' }, harness.nowMillis)).toMatchObject(
      denial,
    );
    const further = [{ userId: 'ada', ruleId: 'r' }];
    expect(harness.one({ userId: 'bob', ruleId: 'r', askedDigest: 1, further })).toMatchObject(denial);
    expect(harness.machine.hash()).toBe(before);
    expect(harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis)?.isBlocked).toBe(true);
    harness.say('ada', { type: 'block', isBlocked: false });
    expect(
      harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis)?.isBlocked,
    ).toBeUndefined();
    expect(granted(harness, 9)).toBe(5);
  });

  it('survives a change of the record that does not name it, and leaves no record when it is lifted', () => {
    const harness = harnessWith(CLUSTER);
    harness.say('ada', { type: 'block', isBlocked: true });
    harness.say('ada', { type: 'put', tier: 'pro', overrides: [] });
    expect(recordOf(harness, 'ada')).toMatchObject({ tier: 'pro', isBlocked: true });
    harness.say('ada', { type: 'put', overrides: [] });
    harness.say('ada', { type: 'block', isBlocked: false });
    expect(recordOf(harness, 'ada')).toMatchObject({ version: 0 });
  });

  it('gives a retry the grant that it had before', () => {
    const harness = harnessWith(CLUSTER);
    const first = harness.one({ userId: 'ada', ruleId: 'r', requestId: '1' });
    harness.say('ada', { type: 'block', isBlocked: true });
    expect(harness.one({ userId: 'ada', ruleId: 'r', requestId: '1' })).toEqual(first);
  });
});

describe('a request that was matched with a record', () => {
  it('is refused once the record has changed, even if it belongs to another key, and gets the present record', () => {
    const harness = harnessWith(CLUSTER);
    const { customer } = harness.say('customer=ada', { type: 'put', tier: 'pro', overrides: [] });
    const version = customer?.record.version ?? 0;
    const asked = { userId: 'ip=1', ruleId: 'r', requestId: '1', askedDigest: 7 };
    const bound = { ...asked, guard: { userId: 'customer=ada', version } };
    expect(
      harness.one({ ...asked, requestId: '0', guard: { userId: 'customer=ada', version: 0 } }),
    ).toMatchObject({
      allowed: false,
      refusal: 'customer_changed',
      customer: { record: { version, tier: 'pro' } },
    });
    expect(harness.one(bound).allowed).toBe(true);
    harness.say('customer=ada', { type: 'put', tier: 'free', overrides: [] });
    expect(harness.one(bound).allowed).toBe(true);
    expect(harness.one({ ...bound, requestId: '2' }).refusal).toBe('customer_changed');
    expect(granted(harness, 9, 'ip=1')).toBe(4);
  });

  it('is denied if the customer is blocked, even if the keys of the request are not', () => {
    const harness = harnessWith(CLUSTER);
    const { customer } = harness.say('customer=ada', { type: 'block', isBlocked: true });
    const guard = { userId: 'customer=ada', version: customer?.record.version ?? 0 };
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', guard })).toMatchObject({
      allowed: false,
      isBlocked: true,
    });
  });

  it("is not refused before the log by a state with an older record than the request's", () => {
    const harness = harnessWith(CLUSTER);
    const guarded = { userId: 'ada', ruleId: 'r' };
    expect(
      harness.machine.quickDenial({ ...guarded, guard: { userId: 'ada', version: 99 } }, harness.nowMillis),
    ).toBeUndefined();
    harness.say('ada', { type: 'put', tier: 'pro', overrides: [] });
    expect(
      harness.machine.quickDenial({ ...guarded, guard: { userId: 'ada', version: 0 } }, harness.nowMillis)
        ?.refusal,
    ).toBe('customer_changed');
  });
});

describe('a reset', () => {
  const meters = ['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'] as const;

  it.each(meters)('forgets the key in a %s, and no other key', (meter) => {
    const harness = harnessWith({ ...CLUSTER, meter });
    granted(harness, 5);
    granted(harness, 5, 'bob');
    harness.say('ada', { type: 'reset' });
    expect(granted(harness, 9)).toBe(5);
    expect(granted(harness, 9, 'bob')).toBe(0);
  });

  it('also forgets grants of former rules and meters', () => {
    const harness = harnessWith({ ...CLUSTER, meter: 'fixedWindow' });
    granted(harness, 5);
    harness.rules(tableOf(2, [CLUSTER]));
    expect(granted(harness, 5)).toBe(0);
    harness.say('ada', { type: 'reset' });
    expect(granted(harness, 9)).toBe(5);
  });

  it.each(meters)('leaves nothing to refund of earlier grants of a %s', (meter) => {
    const harness = harnessWith({ ...CLUSTER, meter });
    const first = harness.one({ userId: 'ada', ruleId: 'r', cost: 5, requestId: '1' });
    harness.say('ada', { type: 'reset' });
    // In the same millisecond, so that the timestamps are equal.
    expect(granted(harness, 9)).toBe(5);
    expect(harness.one({ userId: 'ada', ruleId: 'r', cost: 5, requestId: '1' })).toEqual(first);
    expect(harness.one({ ask: 'refund', userId: 'ada', requestId: '1' }).refund?.refunded).toBe(true);
    expect(granted(harness, 9)).toBe(0);
  });

  it('keeps the record, and a sweep at the last key goes on', () => {
    const harness = harnessWith(CLUSTER);
    put(harness, 'ada', { ruleId: 'r', limit: 2 });
    for (let i = 0; i < 3; i += 1) {
      granted(harness, 1);
      granted(harness, 1, `u${i}`);
      harness.say('ada', { type: 'reset' });
      const copy = new Harness();
      restoreInto(copy.machine, snapshotOf(harness.machine));
      expect(copy.machine.hash()).toBe(harness.machine.hash());
    }
    expect(granted(harness, 9)).toBe(2);
  });
});
