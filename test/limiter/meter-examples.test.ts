/** Worked examples of the meters, from requirements and from their documents. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { windowEnd, windowStart } from '../../src/limiter/meters/fixed-windows.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';

/** Requests of one user at the given times after a multiple of a day. */
const DAY = 86_400_000;
const MIDNIGHT = START - (START % DAY);

function rule(meter: Rule['meter'], limit: number, windowMillis: number, more: Partial<Rule> = {}) {
  return {
    id: 'r',
    limit,
    windowMillis,
    ...(meter !== undefined && { meter }),
    ...more,
  } satisfies Partial<Rule>;
}

function asks(harness: Harness, afterMillis: number, cost = 1): Decision {
  return harness.one({ userId: 'ada', cost, timestampMillis: MIDNIGHT + afterMillis });
}

function answers(harness: Harness, afterMillis: readonly number[]): boolean[] {
  return afterMillis.map((after) => asks(harness, after).allowed);
}

describe('a sliding counter', () => {
  // 004-08: 7 per minute, 5 in the minute before, 3 in this one, of which 30 % have passed: 3 + 5 * 70 % = 6.5, rounded
  // down to
  // 6.
  it('counts 5 in the last window and 3 in this one as 6, after 30 % of the window: one more is allowed, then none', () => {
    const harness = harnessWith(rule('slidingCounter', 7, 60_000));
    expect(asks(harness, 30_000, 5).allowed).toBe(true);
    expect(asks(harness, 77_000, 3).allowed).toBe(true);
    expect(asks(harness, 78_000, 2)).toMatchObject({ allowed: false, remaining: 7 - 6 });
    expect(asks(harness, 78_000)).toMatchObject({ allowed: true, remaining: 0 });
    // 4 + 5 * 70 % = 7.5. One more fits when the sum is below 7, so the previous minute must count for less than 3:
    // from
    // 24,001 ms on.
    expect(asks(harness, 78_000)).toMatchObject({ allowed: false, remaining: 0, retryAfterMillis: 6_001 });
    expect(answers(harness, [84_000, 84_001])).toEqual([false, true]);
  });
});

describe('a fixed window', () => {
  // 004-06: a quota that starts again at the end of a unit; 000-34: it lets up to twice the limit through around that
  // moment.
  it('begins with each full minute, not with the first request', () => {
    const harness = harnessWith(rule('fixedWindow', 2, 60_000));
    expect(asks(harness, 59_998, 2)).toMatchObject({ allowed: true, retryAfterMillis: 2, resetMillis: 2 });
    expect(answers(harness, [59_999, 60_000, 60_000, 60_001])).toEqual([false, true, true, false]);
  });

  it('of a day begins at midnight UTC', () => {
    const harness = harnessWith(rule('fixedWindow', 1, DAY));
    expect(answers(harness, [0, DAY - 1, DAY])).toEqual([true, false, true]);
  });

  it('of a month begins on the first in UTC, as calendars have it', () => {
    const month = { ...rule('fixedWindow', 1, 31 * DAY, { calendar: 'month' }), clock: 'request' } as const;
    const months = Array.from(
      { length: 435 * 12 },
      (_, i) => [Date.UTC(1970, i), Date.UTC(1970, i + 1)] as const,
    );
    const inEach = months.flatMap(([start, end]) => [start, start + 5 * DAY, end - 1]);
    expect(inEach.map((t) => windowStart(month, t))).toEqual(
      months.flatMap(([start]) => [start, start, start]),
    );
    expect(inEach.map((t) => windowEnd(month, t))).toEqual(months.flatMap(([, end]) => [end, end, end]));
    const harness = harnessWith(month);
    const at = (text: string) => asks(harness, Date.parse(text) - MIDNIGHT).allowed;
    const days = [
      '2024-02-01T00:00:00Z',
      '2024-02-29T23:59:59.999Z',
      '2024-03-01T00:00:00Z',
      '2024-03-31T12:00:00Z',
    ];
    expect(days.map(at)).toEqual([true, false, true, false]);
  });
});

describe('a token bucket', () => {
  // 001-15 and 004-04: size 4, refilled with 2 per second, full at the start.
  it('of four tokens, refilled with two per second, grants four at once and one more every half second', () => {
    const harness = harnessWith(rule('tokenBucket', 2, 1_000, { burst: 4 }));
    expect(answers(harness, [0, 0, 0, 0, 0])).toEqual([true, true, true, true, false]);
    expect(asks(harness, 0)).toMatchObject({ retryAfterMillis: 500, resetMillis: 2_000, remaining: 0 });
    expect(answers(harness, [499, 500, 999, 1_000])).toEqual([false, true, false, true]);
    expect(asks(harness, 60_000)).toMatchObject({ allowed: true, remaining: 3 });
  });

  it('grants costs, but none above its size', () => {
    const harness = harnessWith(rule('tokenBucket', 2, 1_000, { burst: 4 }));
    expect(asks(harness, 0, 5)).toMatchObject({ allowed: false, retryAfterMillis: 1_000 });
    expect(asks(harness, 0, 3)).toMatchObject({ allowed: true, remaining: 1 });
    expect(asks(harness, 0, 3)).toMatchObject({ allowed: false, retryAfterMillis: 1_000 });
    expect(asks(harness, 1_000, 3).allowed).toBe(true);
  });

  it('loses no fraction of a token to rounding, even at odd rates', () => {
    const harness = harnessWith(rule('tokenBucket', 7, 1_000, { burst: 1 }));
    let granted = 0;
    for (let t = 0; t <= 10_000; t += 1) if (asks(harness, t).allowed) granted += 1;
    // The first one at once, then one every 143 ms; each waits for a whole millisecond.
    expect(granted).toBe(1 + Math.floor(10_000 / 143));
    const busy = harnessWith(rule('tokenBucket', 7, 1_000, { burst: 2 }));
    granted = 0;
    for (let t = 0; t <= 10_000; t += 1) if (asks(busy, t).allowed) granted += 1;
    expect(granted).toBe(2 + 70);
  });

  it('is not full again after a snapshot, nor after a leader changed', () => {
    const harness = harnessWith({ ...rule('tokenBucket', 1, 1_000, { burst: 4 }), clock: 'cluster' });
    const ask = (): boolean => harness.one({ userId: 'ada' }).allowed;
    expect([ask(), ask(), ask(), ask(), ask()]).toEqual([true, true, true, true, false]);
    const other = new Harness();
    restoreInto(other.machine, snapshotOf(harness.machine));
    other.index = harness.index + 100;
    other.nowMillis = harness.nowMillis;
    const again = () => other.one({ userId: 'ada' }).allowed;
    expect(again()).toBe(false);
    other.nowMillis += 1_003;
    expect([again(), again()]).toEqual([true, false]);
  });
});

describe('a leaky bucket', () => {
  // 004-05: a queue of fixed size and drain rate; 004-10: requests over the limit are queued, dropped or refused.
  it('lets one request proceed every half second, lets three wait, and denies further ones', () => {
    const harness = harnessWith(rule('leakyBucket', 2, 1_000, { burst: 1, queue: 3 }));
    const decisions = [0, 0, 0, 0, 0].map(() => asks(harness, 0));
    expect(decisions.map(({ allowed, waitMillis }) => (allowed ? (waitMillis ?? 0) : 'denied'))).toEqual([
      0,
      500,
      1_000,
      1_500,
      'denied',
    ]);
    expect(decisions[4]).toMatchObject({ retryAfterMillis: 500 });
    expect(asks(harness, 500)).toMatchObject({ allowed: true, waitMillis: 1_500 });
    expect(asks(harness, 10_000).waitMillis).toBeUndefined();
  });

  it('gives a retry the same wait as the first attempt, also after a snapshot', () => {
    const harness = harnessWith(rule('leakyBucket', 2, 1_000, { burst: 1, queue: 3 }));
    asks(harness, 0);
    const request = { userId: 'ada', requestId: 'q', timestampMillis: MIDNIGHT };
    const first = harness.one(request);
    expect(first.waitMillis).toBe(500);
    expect(harness.one(request)).toEqual(first);
    const other = new Harness();
    restoreInto(other.machine, snapshotOf(harness.machine));
    other.index = harness.index;
    other.nowMillis = harness.nowMillis;
    expect(other.one(request)).toEqual(first);
  });
});

describe('a sliding log by granules', () => {
  // 003-06, 003-10: the grants of a second, minute or hour count together; an hour of minutes is sixty numbers.
  it('remembers one run per granule, and never lets more than the limit into a window', () => {
    const hour = 3_600_000;
    const harness = harnessWith(rule(undefined, 1_000, hour, { granularityMillis: 60_000 }));
    for (let second = 0; second < 3_600; second += 6)
      expect(asks(harness, second * 1_000).allowed).toBe(true);
    // The first one is alone in its minute: a grant after the start of a minute counts for the next.
    expect(harness.machine.stats().grants).toBe(61);
  });

  it('counts a grant at most one granule too long, and judges every request at its own time', () => {
    const harness = harnessWith(rule(undefined, 1, 10_000, { granularityMillis: 1_000 }));
    expect(asks(harness, 1)).toMatchObject({
      allowed: true,
      resetMillis: 10_999,
      decided: { timeMillis: MIDNIGHT + 1 },
    });
    expect(asks(harness, 2)).toMatchObject({
      retryAfterMillis: 10_998,
      decided: { timeMillis: MIDNIGHT + 2 },
    });
    expect(answers(harness, [10_999, 11_000])).toEqual([false, true]);
  });

  it('does not make a request in group time wait for a granule in the future', () => {
    const harness = harnessWith({
      ...rule(undefined, 2, 60_000, { granularityMillis: 10_000 }),
      clock: 'cluster',
    });
    harness.nowMillis = MIDNIGHT + DAY + 1;
    expect(harness.one({ userId: 'ada' }).allowed).toBe(true);
    harness.nowMillis += 1;
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: true, remaining: 0 });
  });
});

describe('a rule that changes its meter', () => {
  const log = rule(undefined, 3, 10_000);
  const bucket = rule('tokenBucket', 3, 10_000);

  it('counts grants of the old meter on top until they are out', () => {
    const harness = harnessWith(log);
    expect(asks(harness, 0, 2).allowed).toBe(true);
    harness.rules(tableOf(2, [bucket]));
    expect(asks(harness, 0, 2)).toMatchObject({ allowed: false, remaining: 1, retryAfterMillis: 10_000 });
    expect(asks(harness, 0)).toMatchObject({ allowed: true, remaining: 0, resetMillis: 10_000 });
    // By then its own token is back; the two grants of the old meter still count.
    expect(answers(harness, [9_999, 9_999, 10_000, 10_000, 10_000])).toEqual([
      true,
      false,
      true,
      true,
      false,
    ]);
  });

  it('makes no request wait that fits next to grants of the old meter', () => {
    const harness = harnessWith({ ...log, clock: 'cluster' });
    harness.one({ userId: 'ada' });
    harness.rules(tableOf(2, [{ ...bucket, clock: 'cluster' }]));
    const { ruleId } = harness.one({ userId: 'bob' });
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId }, harness.nowMillis);
    expect(keyStatus?.limits).toMatchObject([{ remaining: 2, retryAfterMillis: 0, resetMillis: 10_001 }]);
  });

  it('makes no other key wait for grants of the old meter', () => {
    const harness = harnessWith(log);
    asks(harness, 0, 2);
    harness.rules(tableOf(2, [bucket]));
    expect(asks(harness, 0)).toMatchObject({ allowed: true, resetMillis: 10_000 });
    // A third of the bucket has flowed in.
    expect(harness.one({ userId: 'bob', timestampMillis: START })).toMatchObject({
      allowed: true,
      resetMillis: 3_334,
    });
  });

  it('finds its grants again when the old meter comes back', () => {
    const harness = harnessWith(log);
    asks(harness, 0, 3);
    harness.rules(tableOf(2, [bucket]));
    harness.rules(tableOf(3, [log]));
    expect(answers(harness, [9_999, 10_000])).toEqual([false, true]);
  });

  it('is the same after a snapshot, for any former meter', () => {
    const harness = harnessWith(log);
    asks(harness, 0, 1);
    harness.rules(tableOf(2, [bucket]));
    asks(harness, 0, 1);
    harness.rules(tableOf(3, [rule('fixedWindow', 3, 10_000)]));
    const other = new Harness();
    const snapshot = snapshotOf(harness.machine);
    restoreInto(other.machine, snapshot);
    expect(snapshotOf(other.machine)).toEqual(snapshot);
    [other.index, other.nowMillis] = [harness.index, harness.nowMillis];
    for (const after of [0, 1, 5_000, 9_999, 10_000, 10_001]) {
      expect(asks(other, after)).toEqual(asks(harness, after));
    }
    expect(other.machine.hash()).toBe(harness.machine.hash());
  });

  it('grants no late request in the window of grants that the old meter forgot', () => {
    const harness = harnessWith(log);
    harness.one({ userId: 'ada', timestampMillis: START, cost: 3 });
    harness.nowMillis += 200_000;
    for (let i = 0; i < 8; i += 1) harness.one({ userId: `user${i}`, timestampMillis: harness.nowMillis });
    harness.rules(tableOf(2, [bucket]));
    expect(harness.one({ userId: 'ada', timestampMillis: START + 1 })).toMatchObject({ allowed: false });
    expect(harness.one({ userId: 'ada', timestampMillis: START + 10_001 }).allowed).toBe(true);
  });

  it('counts grants of the old meter for longer when clocks may differ by more', () => {
    const cluster = { clock: 'cluster' as const };
    const harness = harnessWith({ ...log, ...cluster });
    const grantedMillis = harness.nowMillis;
    harness.one({ userId: 'ada', cost: 3 });
    harness.rules(tableOf(2, [{ ...bucket, ...cluster }], { clockDriftPpm: 100_000 }));
    // Leaders 10 % too fast and all clocks 2 %: 10,000 ms plus 12 %, plus one for rounding.
    const wanted = [11_200, 11_201].map((afterMillis) => {
      harness.nowMillis = grantedMillis + afterMillis;
      return harness.one({ userId: 'ada' }).allowed;
    });
    expect(wanted).toEqual([false, true]);
  });
});
