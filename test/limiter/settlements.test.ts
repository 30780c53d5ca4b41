/**
 * Settled costs, reported after the fact: recorded even above the limit, as debt that denies requests until it has left
 * the
 * window.
 */
import { describe, expect, it } from 'vitest';
import { COST_MAX } from '../../src/api/request.ts';
import { LIMIT_MAX, type Rule } from '../../src/api/rule.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, tableOf } from './harness.ts';

const HOUR_MILLIS = 3_600_000;
const DAY_MILLIS = 24 * HOUR_MILLIS;
const HOUR: Partial<Rule> = { id: 'tokens', limit: 1_000, windowMillis: HOUR_MILLIS, clock: 'cluster' };

function settle(harness: Harness, cost: number, more: object = {}) {
  return harness.one({ userId: 'ada', cost, settle: true, ...more });
}

/** Milliseconds until another request is granted. */
function millisUntilAllowed(harness: Harness): number {
  return harness.one({ userId: 'ada' }).retryAfterMillis;
}

describe('a settled cost', () => {
  it('counts like a grant if it fits', () => {
    const harness = harnessWith(HOUR);
    expect(settle(harness, 400)).toMatchObject({ allowed: true, remaining: 600, retryAfterMillis: 0 });
    expect(harness.one({ userId: 'ada', cost: 601 }).allowed).toBe(false);
    expect(harness.one({ userId: 'ada', cost: 600 }).allowed).toBe(true);
  });

  // As in AI gateways, which learn how many tokens an answer took when it has ended.
  it('of 1,500 under a limit of 1,000 an hour is recorded, and denies until enough has left the window', () => {
    const harness = harnessWith(HOUR);
    const reported = settle(harness, 1_500);
    expect(reported).toMatchObject({ allowed: true, limit: 1_000, remaining: 0 });
    expect(reported.retryAfterMillis).toBe(HOUR_MILLIS + 1);
    expect(millisUntilAllowed(harness)).toBe(HOUR_MILLIS + 1);
    harness.nowMillis += HOUR_MILLIS;
    expect(harness.allows('ada')).toBe(false);
    harness.nowMillis += 1;
    expect(harness.allows('ada')).toBe(true);
  });

  it('is recorded for a key with nothing left, and for one that is in debt already', () => {
    const harness = harnessWith(HOUR);
    harness.one({ userId: 'ada', cost: 1_000 });
    harness.nowMillis += 10;
    expect(settle(harness, 500).allowed).toBe(true);
    harness.nowMillis += 10;
    expect(settle(harness, 700)).toMatchObject({ allowed: true, remaining: 0 });
    // By then 1,000 and 500 have left the window; 700 count, and 300 fit.
    harness.nowMillis += HOUR_MILLIS - 8;
    expect(harness.one({ userId: 'ada', cost: 301 }).allowed).toBe(false);
    expect(harness.one({ userId: 'ada', cost: 300 }).allowed).toBe(true);
  });

  it('is recorded under a limit of 0, and for a blocked customer', () => {
    const harness = harnessWith({ ...HOUR, limit: 0 });
    expect(settle(harness, 5)).toMatchObject({ allowed: true, remaining: 0, retryAfterMillis: HOUR_MILLIS });
    const other = harnessWith(HOUR);
    other.say('ada', { type: 'block', isBlocked: true });
    expect(settle(other, 1_000).allowed).toBe(true);
    other.say('ada', { type: 'block', isBlocked: false });
    expect(other.allows('ada')).toBe(false);
  });

  it('is not recorded for an unknown rule', () => {
    expect(settle(harnessWith(HOUR), 5, { ruleId: 'other' })).toMatchObject({ refusal: 'unknown_rule' });
  });

  it('is recorded once under its id, and a retry gets the same answer', () => {
    const harness = new Harness();
    harness.rules(tableOf(1, [HOUR], { requestIdHorizonMillis: 10_000 }));
    const first = settle(harness, 1_200, { requestId: 'answer-7' });
    harness.nowMillis += 5;
    expect(settle(harness, 1_200, { requestId: 'answer-7' })).toEqual(first);
    expect(settle(harness, 1_201, { requestId: 'answer-7' })).toMatchObject({ refusal: 'request_id_reused' });
    harness.one({ ask: 'refund', userId: 'ada', requestId: 'answer-7' });
    expect(harness.one({ userId: 'ada', cost: 1_000 }).allowed).toBe(true);
  });

  it('is recorded under all limits of its request, even if one of them is full', () => {
    const harness = harnessWith({ ...HOUR, id: 'a', limit: 2 }, { ...HOUR, id: 'b', limit: 10 });
    const further = [{ userId: 'acme', ruleId: 'b', cost: 4 }];
    const reported = settle(harness, 4, { ruleId: 'a', askedDigest: 1, further });
    expect(reported).toMatchObject({ allowed: true, ruleId: 'a', remaining: 0 });
    expect(reported.limits?.map(({ remaining }) => remaining)).toEqual([0, 6]);
    expect(harness.one({ userId: 'acme', ruleId: 'b', cost: 7 }).allowed).toBe(false);
    expect(harness.one({ userId: 'acme', ruleId: 'b', cost: 6 }).allowed).toBe(true);
  });

  it('is never denied at once by a leader, nor refused for a cost above the limit', () => {
    const harness = harnessWith(HOUR);
    harness.one({ userId: 'ada', cost: 1_000 });
    const request = { userId: 'ada', cost: 5_000, settle: true } as const;
    expect(harness.machine.quickDenial(request, harness.nowMillis)).toBeUndefined();
    const bound = { maxAheadMillis: 0, nowMillis: () => harness.nowMillis };
    expect(harness.machine.inadmissible(request, bound)).toBeUndefined();
    expect(harness.machine.inadmissible({ ...request, settle: undefined }, bound)?.field).toBe('cost');
  });

  it('counts from when it is reported, even while a restored cluster denies everything', () => {
    const harness = harnessWith(HOUR);
    harness.machine.apply({ type: 'historyLost' }, harness.next());
    harness.machine.apply({ type: 'historyBegins', wallMillis: harness.nowMillis }, harness.next());
    harness.nowMillis += 1_000;
    expect(harness.allows('ada')).toBe(false);
    expect(settle(harness, 5)).toMatchObject({ allowed: true, decided: { timeMillis: harness.nowMillis } });
    // By then the lost history no longer denies, and the cost settled a second later is out.
    harness.nowMillis += HOUR_MILLIS - 999;
    expect(harness.one({ userId: 'ada', cost: 996 }).allowed).toBe(false);
    expect(harness.one({ userId: 'ada', cost: 995 }).allowed).toBe(true);
  });

  it('at a timestamp before the newest grant counts at the time of that grant', () => {
    const harness = harnessWith({ ...HOUR, clock: 'request' });
    harness.one({ userId: 'ada', timestampMillis: 5_000 });
    expect(settle(harness, 1_000, { timestampMillis: 1_000 })).toMatchObject({
      allowed: true,
      decided: { timeMillis: 5_000 },
    });
  });
});

describe('debt under each meter', () => {
  // 1,500 of 1,000 per hour, at the start of an hour: the wait until one more fits. Windows in group time are a
  // millisecond longer, except for aligned ones.
  it.each([
    ['slidingLog', HOUR_MILLIS + 1],
    // In the next hour, when less than 1,000 of the 1,500 still count.
    ['slidingCounter', HOUR_MILLIS + HOUR_MILLIS / 3 + 1],
    ['fixedWindow', HOUR_MILLIS],
    // 501 have to drain.
    ['tokenBucket', Math.ceil((501 * (HOUR_MILLIS + 1)) / 1_000)],
    ['leakyBucket', Math.ceil((501 * (HOUR_MILLIS + 1)) / 1_000)],
  ] as const)('of a %s denies until it is out, and is in snapshots', (meter, waitMillis) => {
    const harness = harnessWith({ ...HOUR, meter });
    harness.nowMillis += HOUR_MILLIS - (harness.nowMillis % HOUR_MILLIS);
    expect(settle(harness, 1_500).retryAfterMillis).toBe(waitMillis);
    const { machine } = harness;
    const hash = machine.hash();
    restoreInto(machine, snapshotOf(machine));
    expect(machine.hash()).toBe(hash);
    harness.nowMillis += waitMillis - 1;
    expect(harness.allows('ada')).toBe(false);
    harness.nowMillis += 1;
    expect(harness.allows('ada')).toBe(true);
  });

  it.each(['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'] as const)(
    'of any size is kept and answered by a %s',
    (meter) => {
      const harness = harnessWith({ ...HOUR, limit: LIMIT_MAX, windowMillis: 31 * DAY_MILLIS, meter });
      for (let i = 0; i < 5_000; i += 1) {
        harness.nowMillis += 1;
        const { allowed, refusal } = settle(harness, COST_MAX);
        // A log keeps each settlement, up to the largest sum it can hold.
        expect(allowed ? 'charged' : refusal).toBe(
          meter === 'slidingLog' && i > 4_293 ? 'at_capacity' : 'charged',
        );
      }
      const { machine } = harness;
      restoreInto(machine, snapshotOf(machine));
      expect(harness.allows('ada')).toBe(false);
    },
  );

  it('of a throttle carries over to later requests with other numbers, and any size is kept', () => {
    const harness = harnessWith(HOUR);
    const ruleId = '1/2678400000ms+3';
    for (let i = 0; i < 50; i += 1) settle(harness, COST_MAX, { ruleId });
    restoreInto(harness.machine, snapshotOf(harness.machine));
    expect(harness.one({ userId: 'ada', ruleId }).allowed).toBe(false);
  });
});

describe('debt that a new window inherits, with another meter', () => {
  const HOURLY: Rule = {
    id: 'r/hour',
    of: 'r',
    limit: 500_000,
    windowMillis: HOUR_MILLIS,
    clock: 'cluster',
    meter: 'fixedWindow',
  };
  const METERS = ['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket'] as const;

  function owing(meter: Rule['meter'], times: number): Harness {
    const harness = new Harness();
    // At the start of a day, so all of it is in one window.
    harness.nowMillis -= harness.nowMillis % DAY_MILLIS;
    harness.rules(tableOf(1, [{ ...HOURLY, ...(meter !== undefined && { meter }) }]));
    for (let i = 0; i < times; i += 1) settle(harness, COST_MAX, { ruleId: 'r/hour' });
    return harness;
  }

  const PAIRS = METERS.flatMap((before) => METERS.map((after) => [before, after] as const));
  it.each(PAIRS)(
    'from a %s to a %s: a further settlement stops no node, and survives snapshots',
    (before, after) => {
      const harness = owing(before, 3);
      const daily = { ...HOURLY, id: 'r/day', windowMillis: DAY_MILLIS, meter: after };
      harness.rules(tableOf(2, [daily]));
      for (let i = 0; i < 3; i += 1) settle(harness, COST_MAX, { ruleId: 'r/day' });
      const { machine } = harness;
      const hash = machine.hash();
      restoreInto(machine, snapshotOf(machine));
      expect(machine.hash()).toBe(hash);
      expect(harness.one({ userId: 'ada', ruleId: 'r/day' }).allowed).toBe(false);
    },
  );

  it.each([4_294, 4_295])(
    'is refused by a log whose sum it would exceed: %i times the largest cost',
    (times) => {
      const harness = owing('fixedWindow', times);
      const daily = { ...HOURLY, id: 'r/day', windowMillis: DAY_MILLIS, meter: 'slidingLog' as const };
      harness.rules(tableOf(2, [daily]));
      expect(settle(harness, COST_MAX, { ruleId: 'r/day' })).toMatchObject({ refusal: 'at_capacity' });
    },
  );
});
