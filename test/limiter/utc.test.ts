/**
 * Group time stops while a whole group is down, so it falls behind UTC with every outage. The log records by how
 * much. From then on aligned windows follow UTC; this frees no grant and moves no other window.
 */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { decodeCommand, encodeUtc } from '../../src/limiter/log/command.ts';
import { UTC_STEPS_MAX, UtcSteps } from '../../src/limiter/state/utc-steps.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

const MINUTE = 60_000;
/** The time is 20 s after a full minute. */
const PAST_MILLIS = START % MINUTE;
const QUOTA: Partial<Rule> = {
  id: 'r',
  limit: 10,
  windowMillis: MINUTE,
  clock: 'cluster',
  meter: 'fixedWindow',
};

function quota(rule: Partial<Rule> = {}): Harness {
  return harnessWith({ ...QUOTA, ...rule });
}

function step(harness: Harness, aheadMillis: number): void {
  harness.machine.apply(decodeCommand(encodeUtc(aheadMillis)), harness.next());
  harness.nowMillis += 1;
}

function decided(harness: Harness, cost: number, userId = 'ada', timestampMillis?: number) {
  const { allowed, remaining, retryAfterMillis, resetMillis } = harness.one({
    userId,
    cost,
    timestampMillis,
  });
  return { allowed, remaining, retryAfterMillis, resetMillis };
}

describe('after an entry that records how far UTC is ahead', () => {
  it('windows end with the minutes of UTC', () => {
    expect(PAST_MILLIS).toBe(20_000);
    const harness = quota();
    expect(decided(harness, 1, 'before').resetMillis).toBe(40_000);
    // Two minutes and 15 s: now it is 35 s after a full minute.
    step(harness, 135_000);
    expect(decided(harness, 10)).toMatchObject({ allowed: true, resetMillis: 24_999 });
    expect(decided(harness, 1)).toMatchObject({ allowed: false, retryAfterMillis: 24_999 });
    harness.nowMillis += 24_998;
    expect(decided(harness, 1)).toMatchObject({ allowed: false, retryAfterMillis: 1 });
    harness.nowMillis += 1;
    expect(decided(harness, 10)).toMatchObject({ allowed: true, resetMillis: MINUTE });
  });

  it('months are those of UTC', () => {
    const harness = quota({ windowMillis: 31 * 86_400_000, calendar: 'month' });
    const lateMillis = Date.UTC(2023, 11, 31, 23, 59, 59) - START;
    step(harness, lateMillis);
    expect(decided(harness, 10).resetMillis).toBe(999);
    harness.nowMillis += 999;
    expect(decided(harness, 10).resetMillis).toBe(31 * 86_400_000);
  });

  it('no grant is freed early, and none counts for longer', () => {
    const harness = quota();
    expect(decided(harness, 7)).toMatchObject({ allowed: true, resetMillis: 40_000 });
    harness.nowMillis += 10_000;
    // UTC steps to the last millisecond of the same minute, whose end would free every grant.
    step(harness, 29_999);
    expect(decided(harness, 4)).toMatchObject({ allowed: false, retryAfterMillis: 29_999 });
    expect(decided(harness, 3)).toEqual({
      allowed: true,
      remaining: 0,
      retryAfterMillis: 29_999,
      resetMillis: MINUTE,
    });
    harness.nowMillis += 29_998;
    expect(decided(harness, 1)).toMatchObject({ allowed: false, retryAfterMillis: 1 });
    harness.nowMillis += 1;
    expect(decided(harness, 7)).toMatchObject({ allowed: true, remaining: 0, resetMillis: 30_001 });
  });

  it('a grant counts to the end of its window of UTC, regardless of cost carried over from earlier windows', () => {
    const harness = quota();
    expect(decided(harness, 6).allowed).toBe(true);
    // Still within the minute: 6 count for 40 s of group time, and UTC has 30 s of the minute left.
    step(harness, 10_000);
    expect(decided(harness, 4)).toMatchObject({ allowed: true, remaining: 0, retryAfterMillis: 29_999 });
    harness.nowMillis += 29_999;
    // A new minute of UTC: the 4 no longer count, the 6 do.
    expect(decided(harness, 5)).toMatchObject({ allowed: false, remaining: 4, retryAfterMillis: 10_000 });
    expect(decided(harness, 4)).toMatchObject({ allowed: true, resetMillis: MINUTE });
    harness.nowMillis += 10_000;
    expect(decided(harness, 7)).toMatchObject({ allowed: false, retryAfterMillis: 50_000 });
    expect(decided(harness, 6).allowed).toBe(true);
  });

  it('cost carried over by two steps counts until the last of it is out', () => {
    const harness = quota();
    decided(harness, 2);
    step(harness, 30_000);
    decided(harness, 3);
    step(harness, 45_000);
    expect(decided(harness, 6)).toMatchObject({ allowed: false, remaining: 5 });
    expect(decided(harness, 1)).toMatchObject({ allowed: true, resetMillis: 54_998 });
    // The first 2 would have counted for 40 s, the 3 for 10 s.
    harness.nowMillis = START + 39_999;
    expect(decided(harness, 6)).toMatchObject({ allowed: false, retryAfterMillis: 1 });
    harness.nowMillis += 1;
    expect(decided(harness, 9)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('cost carried over from other windows does not count for the whole next window, even if UTC steps in it', () => {
    const harness = quota();
    decided(harness, 6);
    // After the minute: the 6 count for 40 s, until 25 s after the next full minute.
    step(harness, MINUTE + 5_000);
    expect(decided(harness, 1).allowed).toBe(true);
    harness.nowMillis += 20_000;
    step(harness, MINUTE + 6_001);
    expect(decided(harness, 1).allowed).toBe(true);
    // The 2 of this minute end with it, the 6 do not.
    harness.nowMillis = START + 35_000;
    expect(decided(harness, 5)).toMatchObject({ allowed: false, remaining: 4, retryAfterMillis: 5_000 });
    expect(decided(harness, 4).allowed).toBe(true);
    harness.nowMillis = START + 40_000;
    expect(decided(harness, 6)).toMatchObject({ allowed: true, remaining: 0 });
  });

  it('cost carried over counts by the present rule, like all grants', () => {
    const harness = quota({ limit: 1_000, windowMillis: 24 * 60 * MINUTE });
    expect(decided(harness, 900).allowed).toBe(true);
    step(harness, 1_001);
    expect(decided(harness, 1).allowed).toBe(true);
    harness.rules(tableOf(2, [{ ...QUOTA, limit: 100 }]));
    expect(decided(harness, 1)).toMatchObject({ allowed: false, retryAfterMillis: 39_999 });
    harness.nowMillis = START + 40_000;
    expect(decided(harness, 100).allowed).toBe(true);
  });

  it('sliding windows, counters and buckets do not change', () => {
    for (const meter of ['slidingLog', 'slidingCounter', 'tokenBucket'] as const) {
      const [still, stepped] = [quota({ meter }), quota({ meter })];
      for (const harness of [still, stepped]) decided(harness, 8);
      step(stepped, 1e9);
      still.nowMillis += 1;
      for (let i = 0; i < 20; i += 1) {
        for (const harness of [still, stepped]) harness.nowMillis += 4_000;
        expect({ meter, ...decided(stepped, 2) }).toEqual({ meter, ...decided(still, 2) });
      }
    }
  });

  it('timestamps of callers are UTC before and after the step', () => {
    const harness = quota({ clock: 'request' });
    const stamp = START + 3 * MINUTE;
    expect(decided(harness, 10, 'ada', stamp)).toMatchObject({ allowed: true, resetMillis: 40_000 });
    step(harness, 3 * MINUTE);
    expect(decided(harness, 1, 'ada', stamp + 39_999)).toMatchObject({ allowed: false, retryAfterMillis: 1 });
    expect(decided(harness, 10, 'ada', stamp + 40_000)).toMatchObject({ allowed: true });
    // A request without a timestamp is judged at UTC, so it never has to wait for a future time.
    harness.nowMillis += 99_999;
    expect(decided(harness, 10)).toMatchObject({ allowed: true, resetMillis: MINUTE });
  });

  it('a caller with timestamps does not wait for outages, even after requests in group time', () => {
    const harness = quota({ clock: 'request' });
    expect(decided(harness, 10, 'ada', START).allowed).toBe(true);
    step(harness, 2 * 60 * MINUTE);
    expect(decided(harness, 1)).toMatchObject({ allowed: false, retryAfterMillis: 39_999 });
    const wait = decided(harness, 1, 'ada', START + 10_000).retryAfterMillis;
    expect(wait).toBe(30_000);
    expect(decided(harness, 10, 'ada', START + 10_000 + wait).allowed).toBe(true);
    // A request without a timestamp counts grants of both kinds.
    expect(decided(harness, 1)).toMatchObject({ allowed: false, remaining: 0 });
  });

  it('only the largest offset counts: UTC never runs back', () => {
    const harness = quota();
    step(harness, 5_000);
    const hash = harness.machine.hash();
    step(harness, 5_000);
    step(harness, 4_000);
    step(harness, 0);
    expect(harness.machine.hash()).toBe(hash);
    expect(harness.machine.utcAheadMillis).toBe(5_000);
  });

  it('a refund gives back a grant of this window of UTC, and no cost carried over from earlier ones', () => {
    for (const [aheadMillis, remaining] of [
      [1_000, 6],
      [MINUTE, 3],
    ] as const) {
      const harness = quota();
      harness.one({ userId: 'ada', cost: 3, requestId: 'before' });
      step(harness, aheadMillis);
      harness.one({ userId: 'ada', cost: 4, requestId: 'after' });
      harness.ask({ ask: 'refund', userId: 'ada', requestId: 'before' });
      expect(decided(harness, 10)).toMatchObject({ allowed: false, remaining });
      harness.ask({ ask: 'refund', userId: 'ada', requestId: 'after' });
      expect(harness.machine.quickDenial({ userId: 'ada', cost: 7 }, harness.nowMillis)).toBeUndefined();
    }
  });

  it('a key is forgotten when none of its grants counts, not before', () => {
    const harness = quota();
    decided(harness, 3);
    step(harness, 3 * MINUTE + 30_000);
    decided(harness, 2);
    const sweep = decodeCommand(Uint8Array.of(3));
    // The first 3 count for 40 s; the 2 for 10 s, and a key is kept for a window after its last grant.
    for (const [atMillis, keys] of [
      [MINUTE + 1, 1],
      [MINUTE + 2, 0],
    ] as const) {
      harness.nowMillis = START + atMillis;
      harness.machine.apply(sweep, harness.next());
      expect(harness.machine.stats().keys).toBe(keys);
    }
    expect(decided(harness, 10).allowed).toBe(true);
  });

  it('a rule that changes its meter keeps its grants, converted to the time of the other meter', () => {
    const harness = quota();
    step(harness, 7 * MINUTE);
    expect(decided(harness, 6).resetMillis).toBe(39_999);
    harness.rules(tableOf(2, [{ ...QUOTA, meter: 'slidingLog' }]));
    expect(decided(harness, 5)).toMatchObject({ allowed: false, remaining: 4, retryAfterMillis: 39_999 });
    expect(decided(harness, 4)).toMatchObject({ allowed: true });
    harness.rules(tableOf(3, [QUOTA]));
    expect(decided(harness, 1)).toMatchObject({ allowed: false, remaining: 0 });
    harness.nowMillis += 39_999;
    expect(decided(harness, 7)).toMatchObject({ allowed: false, remaining: 6 });
    expect(decided(harness, 6).allowed).toBe(true);
  });

  it('a new window inherits grants, converted to the time of the other window', () => {
    const sliding = { ...QUOTA, id: 'r/a', of: 'r', meter: 'slidingLog' as const };
    const harness = quota({ id: 'r/b', of: 'r' });
    step(harness, 5 * MINUTE);
    const ruleId = 'r/b';
    expect(harness.one({ userId: 'ada', cost: 6, ruleId }).allowed).toBe(true);
    harness.nowMillis += 1;
    harness.rules(tableOf(2, [{ ...QUOTA, id: ruleId, of: 'r' }, sliding]));
    harness.nowMillis += 1;
    const denial = harness.one({ userId: 'ada', cost: 5, ruleId: 'r/a' });
    expect(denial).toMatchObject({ allowed: false, remaining: 4, retryAfterMillis: 39_997 });
    expect(harness.one({ userId: 'ada', cost: 4, ruleId: 'r/a' }).allowed).toBe(true);
  });

  it('a usage that an operator sets counts in the present window', () => {
    const harness = quota();
    step(harness, 3 * MINUTE + 25_000);
    harness.say('ada', { type: 'set', ruleIds: ['r'], used: 8 });
    expect(decided(harness, 3)).toMatchObject({ allowed: false, remaining: 2, retryAfterMillis: 14_999 });
  });

  it('a snapshot preserves all of this', () => {
    const harness = quota();
    decided(harness, 5);
    step(harness, 90_000);
    decided(harness, 2);
    step(harness, 3 * MINUTE);
    const copy = new Harness();
    restoreInto(copy.machine, snapshotOf(harness.machine));
    copy.index = harness.index;
    copy.nowMillis = harness.nowMillis;
    expect(copy.machine.hash()).toBe(harness.machine.hash());
    for (const cost of [4, 3, 1]) expect(decided(copy, cost)).toEqual(decided(harness, cost));
    expect([...copy.machine.inspect()]).toEqual([...harness.machine.inspect()]);
  });
});

describe('the steps of UTC', () => {
  it('give the offset at any time; a time that a step skipped has the offset after it', () => {
    const steps = new UtcSteps();
    expect(steps.step(500, 1_000)).toBe(true);
    expect(steps.step(700, 2_000)).toBe(true);
    expect([0, 1_000, 1_001, 1_500, 2_500].map((utc) => steps.aheadAt(utc))).toEqual([0, 0, 500, 500, 500]);
    expect([2_501, 2_700, 9_999].map((utc) => steps.aheadAt(utc))).toEqual([700, 700, 700]);
  });

  it('are forgotten when no window reaches back to them, but their sum is kept', () => {
    const steps = new UtcSteps();
    const day = 86_400_000;
    for (let i = 1; i <= 100; i += 1) steps.step(i * 1_000, i * day);
    expect(steps.all.length).toBeLessThan(65);
    expect(steps.aheadAt(0)).toBe(steps.all[0]?.aheadMillis);
    expect(steps.aheadAt(100 * day)).toBe(99_000);
    expect(steps.aheadMillis).toBe(100_000);
  });

  it('are bounded in number: beyond it, grants between two steps count as before both, and none is freed early', () => {
    const steps = new UtcSteps();
    for (let i = 1; i < UTC_STEPS_MAX; i += 1) steps.step(i * 2_000, i);
    const utcMillis = UTC_STEPS_MAX + steps.aheadMillis;
    expect(steps.all.length).toBe(UTC_STEPS_MAX);
    const before = steps.aheadAt(utcMillis);
    expect(steps.step(1e9, UTC_STEPS_MAX + 10)).toBe(true);
    expect(steps.all.length).toBe(UTC_STEPS_MAX);
    expect(steps.aheadMillis).toBe(1e9);
    expect(steps.aheadAt(utcMillis)).toBeLessThanOrEqual(before);
    const fields = steps.all.map(({ fromMillis }) => fromMillis);
    expect(fields).toEqual([...new Set(fields)].toSorted((a, b) => a - b));
  });

  it('are kept for the time that passed since, not the time that they skip', () => {
    const harness = quota({ windowMillis: 31 * 86_400_000, calendar: 'month' });
    expect(decided(harness, 10).allowed).toBe(true);
    step(harness, 100 * 86_400_000);
    step(harness, 100 * 86_400_000 + 1_001);
    expect(decided(harness, 1).allowed).toBe(false);
  });
});
