/**
 * Blocks with an end: the time counts in group time from the entry that set it, the end needs no further entry, and is
 * the same
 * on all replicas.
 */
import { describe, expect, it } from 'vitest';
import { BLOCK_MILLIS_MAX, NO_RECORD } from '../../src/api/customer-record.ts';
import { encodeCustomers, readCustomers } from '../../src/limiter/log/customer-entry.ts';
import { CommandDecodeError } from '../../src/limiter/log/command.ts';
import { decodeRecord, encodeRecord } from '../../src/limiter/record-form.ts';
import type { Rule } from '../../src/api/rule.ts';
import { ByteReader } from '../../src/bytes/byte-reader.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START } from './harness.ts';

const CLUSTER: Partial<Rule> = { id: 'r', limit: 5, windowMillis: 1_000, clock: 'cluster' };
const ASKED = { userId: 'ada', ruleId: 'r' };

function blockedFor(durationMillis: number, rule = CLUSTER): Harness {
  const harness = harnessWith(rule);
  harness.say('ada', { type: 'block', isBlocked: true, durationMillis });
  return harness;
}

describe('a block with an end', () => {
  it('denies until its end, to the millisecond, and reports the remaining time', () => {
    const harness = blockedFor(60_000);
    harness.nowMillis = START + 59_999;
    const denial = { allowed: false, isBlocked: true, retryAfterMillis: 1, remaining: 0, resetMillis: 0 };
    expect(harness.one(ASKED)).toMatchObject(denial);
    expect(harness.machine.quickDenial(ASKED, harness.nowMillis)).toMatchObject(denial);
    expect(harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis)).toMatchObject({
      isBlocked: true,
      blockedUntilMillis: START + 60_000,
    });
    harness.nowMillis = START + 60_000;
    expect(harness.machine.quickDenial(ASKED, harness.nowMillis)).toBeUndefined();
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'ada' }, harness.nowMillis);
    expect([keyStatus?.isBlocked, keyStatus?.blockedUntilMillis]).toEqual([undefined, undefined]);
    expect(harness.one(ASKED).allowed).toBe(true);
  });

  it('counts from the group time of its entry and ignores the timestamps of requests', () => {
    const harness = blockedFor(1_000, { ...CLUSTER, clock: 'request' });
    expect(harness.one({ ...ASKED, timestampMillis: START + 5_000 })).toMatchObject({
      isBlocked: true,
      retryAfterMillis: 1_000,
    });
    harness.nowMillis = START + 1_000;
    expect(harness.one({ ...ASKED, timestampMillis: START + 5 }).allowed).toBe(true);
  });

  it('is reported as recorded, and as absent once it is over', () => {
    const harness = blockedFor(1_000);
    const version = harness.index;
    const record = { version, overrides: [], isBlocked: true, blockedUntilMillis: START + 1_000 };
    expect(harness.say('ada', { type: 'read' }).customer?.record).toEqual(record);
    harness.nowMillis = START + 1_000;
    const over = { version, overrides: [], isBlocked: false };
    expect(harness.say('ada', { type: 'read' }).customer?.record).toEqual(over);
    const guard = { userId: 'ada', version: 0 };
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', guard }).customer?.record).toEqual(over);
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', guard: { ...guard, version } }).allowed).toBe(true);
  });

  it('denies requests of the customer under other keys, too', () => {
    const harness = blockedFor(1_000);
    const guard = { userId: 'ada', version: harness.index };
    const further = [{ userId: 'ada', ruleId: 'r' }];
    harness.nowMillis = START + 400;
    const denial = { isBlocked: true, retryAfterMillis: 600 };
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', guard })).toMatchObject(denial);
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', askedDigest: 1, further })).toMatchObject(denial);
  });

  it('is replaced by another block, which has no end if it has no duration', () => {
    const harness = blockedFor(1_000);
    harness.say('ada', { type: 'block', isBlocked: true, durationMillis: 5_000 });
    harness.nowMillis = START + 4_999;
    expect(harness.one(ASKED)).toMatchObject({ isBlocked: true, retryAfterMillis: 1 });
    harness.say('ada', { type: 'block', isBlocked: true });
    harness.nowMillis = START + 10_000_000;
    expect(harness.one(ASKED)).toMatchObject({ isBlocked: true, retryAfterMillis: 0 });
    harness.say('ada', { type: 'block', isBlocked: true, durationMillis: 1 });
    harness.nowMillis += 1;
    expect(harness.one(ASKED).allowed).toBe(true);
  });

  it('keeps its end through a change that does not name it, can be set together with limits, and changes nothing else', () => {
    const harness = blockedFor(1_000);
    harness.say('ada', { type: 'put', tier: 'pro', overrides: [] });
    const read = (): unknown => harness.say('ada', { type: 'read' }).customer?.record;
    expect(read()).toMatchObject({ tier: 'pro', isBlocked: true, blockedUntilMillis: START + 1_000 });
    harness.say('ada', { type: 'put', overrides: [], isBlocked: true, durationMillis: 2_000 });
    harness.say('ada', { type: 'put', tier: 'free', overrides: [{ ruleId: 'r', limit: 2 }] });
    harness.nowMillis = START + 2_000;
    const version = harness.index;
    const rest = { tier: 'free', overrides: [{ ruleId: 'r', limit: 2 }], isBlocked: false };
    expect(read()).toEqual({ version, ...rest });
    harness.say('ada', { type: 'put', tier: 'free', overrides: [] });
    expect(read()).toEqual({ version: harness.index - 1, tier: 'free', overrides: [], isBlocked: false });
  });

  it('leaves no record when an operator changes a record that contains nothing else', () => {
    const harness = harnessWith(CLUSTER);
    const empty = harness.machine.stateBytes;
    harness.say('ada', { type: 'block', isBlocked: true, durationMillis: 1 });
    expect(harness.machine.stateBytes).toBeGreaterThan(empty);
    harness.nowMillis += 1;
    harness.say('ada', { type: 'put', overrides: [] });
    expect(harness.machine.stateBytes).toBe(empty);
  });

  it('is found by the sweeps of one round, for any number of records', () => {
    const harness = harnessWith(CLUSTER);
    harness.say('u0', { type: 'block', isBlocked: true, durationMillis: 1 });
    for (let i = 1; i < 8_200; i += 1) harness.say(`u${i}`, { type: 'block', isBlocked: true });
    const { stateBytes, sweepsPerRound } = harness.machine;
    harness.nowMillis += 1;
    for (let i = 0; i < sweepsPerRound; i += 1) harness.machine.apply({ type: 'sweep' }, harness.next());
    expect(harness.machine.stateBytes).toBeLessThan(stateBytes);
  });

  it('leaves nothing once it is over: a sweep forgets a record that contains nothing else, and no other', () => {
    const harness = harnessWith(CLUSTER);
    const block = { type: 'block', isBlocked: true } as const;
    harness.say('ben', { type: 'put', tier: 'pro', overrides: [], isBlocked: true, durationMillis: 10 });
    harness.say('cy', { ...block, durationMillis: 11 });
    harness.say('di', block);
    const { stateBytes } = harness.machine;
    for (let i = 0; i < 20; i += 1) harness.say(`u${i}`, { ...block, durationMillis: 10 });
    const version = harness.index;
    const sweep = (): void => harness.machine.apply({ type: 'sweep' }, harness.next());
    sweep();
    expect(harness.machine.stateBytes).toBeGreaterThan(stateBytes);
    harness.nowMillis += 10;
    sweep();
    expect(harness.machine.stateBytes).toBe(stateBytes);
    const copy = new Harness();
    restoreInto(copy.machine, snapshotOf(harness.machine));
    expect(copy.machine.hash()).toBe(harness.machine.hash());
    const read = (userId: string): unknown => harness.say(userId, { type: 'read' }).customer?.record;
    expect(['u0', 'u19'].map(read)).toEqual([NO_RECORD, NO_RECORD]);
    expect(['ben', 'cy', 'di'].map(read)).toMatchObject([
      { tier: 'pro', isBlocked: false },
      { isBlocked: true, blockedUntilMillis: START + 11 },
      { isBlocked: true },
    ]);
    const guard = { userId: 'u19', version };
    expect(harness.one({ userId: 'ip=1', ruleId: 'r', guard })).toMatchObject({
      refusal: 'customer_changed',
      customer: { record: NO_RECORD },
    });
  });

  it('is part of snapshots and of the hash', () => {
    const harness = blockedFor(60_000);
    const copy = new Harness();
    restoreInto(copy.machine, snapshotOf(harness.machine));
    expect(copy.machine.hash()).toBe(harness.machine.hash());
    expect(blockedFor(60_001).machine.hash()).not.toBe(harness.machine.hash());
    const at = START + 59_999;
    expect(copy.machine.quickDenial(ASKED, at)).toEqual(harness.machine.quickDenial(ASKED, at));
    expect(copy.machine.quickDenial(ASKED, at)).toMatchObject({ isBlocked: true, retryAfterMillis: 1 });
    expect(copy.machine.quickDenial(ASKED, START + 60_000)).toBeUndefined();
  });
});

/** The bytes of an entry after its kind. */
function readerOf(bytes: Uint8Array): ByteReader {
  return new ByteReader((problem) => new CommandDecodeError(problem), bytes.subarray(1));
}

describe('the bytes of a block', () => {
  it.each([
    [{ type: 'block', isBlocked: false }],
    [{ type: 'block', isBlocked: true }],
    [{ type: 'block', isBlocked: true, durationMillis: BLOCK_MILLIS_MAX }],
    [{ type: 'put', overrides: [], isBlocked: undefined }],
    [{ type: 'put', overrides: [], isBlocked: false }],
    [{ type: 'put', overrides: [], isBlocked: true, durationMillis: 1 }],
  ] as const)('round-trip through an entry: %j', (action) => {
    const bytes = encodeCustomers([{ ask: 'customer', userId: 'ada', action }]);
    expect(readCustomers(readerOf(bytes))).toEqual([{ ask: 'customer', userId: 'ada', action }]);
  });

  it.each([0, BLOCK_MILLIS_MAX + 1])('are refused with a duration of %d ms', (durationMillis) => {
    const action = { type: 'block', isBlocked: true, durationMillis } as const;
    const encode = (): unknown =>
      readCustomers(readerOf(encodeCustomers([{ ask: 'customer', userId: 'ada', action }])));
    expect(encode).toThrow('not a limiter command');
  });

  it.each([
    { version: 1, overrides: [], isBlocked: true },
    { version: 1, tier: 'pro', overrides: [], isBlocked: true, blockedUntilMillis: START },
    { version: 1, overrides: [], isBlocked: false },
  ])('round-trip through a record sent to another node: %j', (record) => {
    expect(decodeRecord(encodeRecord(record))).toEqual(record);
  });
});
