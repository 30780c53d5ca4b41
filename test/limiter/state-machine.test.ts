/** The state machine: single decisions, positions, rule changes, quick denials and request ids. */
import { describe, expect, it } from 'vitest';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { Harness, harnessWith, START, tableOf } from './harness.ts';

describe('a decision', () => {
  it('is a refusal before any rule table and for an unknown rule', () => {
    const harness = new Harness();
    expect(harness.one({ userId: 'ada' })).toMatchObject({
      allowed: false,
      refusal: 'unknown_rule',
      ruleId: '',
    });
    harness.rules(tableOf(1, [{ id: 'a' }]));
    expect(harness.one({ userId: 'ada', ruleId: 'b' })).toMatchObject({
      allowed: false,
      refusal: 'unknown_rule',
      ruleId: 'b',
    });
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: true, ruleId: 'a' });
  });

  it('reports the remaining cost, the wait and its position', () => {
    const harness = harnessWith({ id: 'a', clock: 'cluster' });
    expect(harness.one({ userId: 'ada', cost: 2 })).toEqual({
      allowed: true,
      ruleId: 'a',
      limit: 3,
      windowMillis: 1_000,
      remaining: 1,
      retryAfterMillis: 0,
      resetMillis: 1_001,
      decided: { term: 1, index: 2, position: 0, timeMillis: START },
      rulesVersion: 1,
    });
    harness.nowMillis += 400;
    expect(harness.one({ userId: 'ada' })).toMatchObject({
      allowed: true,
      remaining: 0,
      retryAfterMillis: 601,
    });
    harness.nowMillis += 100;
    expect(harness.one({ userId: 'ada', cost: 3 })).toEqual({
      allowed: false,
      ruleId: 'a',
      limit: 3,
      windowMillis: 1_000,
      remaining: 0,
      retryAfterMillis: 901,
      resetMillis: 901,
      decided: { term: 1, index: 4, position: 0, timeMillis: START + 500 },
      rulesVersion: 1,
    });
    harness.nowMillis += 900;
    expect(harness.one({ userId: 'ada', cost: 3 }).allowed).toBe(false);
    harness.nowMillis += 1;
    expect(harness.one({ userId: 'ada', cost: 3 }).allowed).toBe(true);
  });

  it('denies a cost above the limit and names the window as the wait', () => {
    const harness = harnessWith({ limit: 3 });
    expect(harness.one({ userId: 'ada', cost: 4 })).toMatchObject({
      allowed: false,
      remaining: 3,
      retryAfterMillis: 1_000,
      resetMillis: 0,
    });
    expect(harness.machine.stats().keys).toBe(0);
  });

  it('uses the exact window between timestamps of callers and the wider one between stamps of the group', () => {
    const harness = harnessWith({ id: 'request', limit: 1 }, { id: 'cluster', limit: 1, clock: 'cluster' });
    expect(harness.allows('ada', START)).toBe(true);
    expect(harness.allows('ada', START + 999)).toBe(false);
    expect(harness.allows('ada', START + 1_000)).toBe(true);
    const cluster = { userId: 'ada', ruleId: 'cluster' };
    expect(harness.one(cluster).allowed).toBe(true);
    harness.nowMillis += 1_000;
    expect(harness.one(cluster).allowed).toBe(false);
    // A rule with the cluster clock ignores timestamps.
    expect(harness.one({ ...cluster, timestampMillis: START + 5_000 }).allowed).toBe(false);
    harness.nowMillis += 1;
    expect(harness.one(cluster).allowed).toBe(true);
  });

  it('still counts, by the wider window, grants that left the exact window of a timestamp', () => {
    const harness = harnessWith({ limit: 2 });
    harness.one({ userId: 'ada', cost: 2 });
    expect(harness.allows('ada', START + 1_000)).toBe(true);
    harness.nowMillis += 1_000;
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: false, retryAfterMillis: 1 });
  });

  it('clamps a late timestamp to the newest grant, and counts the wait from the time asked', () => {
    const harness = harnessWith({ limit: 1 });
    harness.allows('ada', START + 500);
    expect(harness.one({ userId: 'ada', timestampMillis: START + 300 })).toMatchObject({
      allowed: false,
      retryAfterMillis: 1_200,
      decided: { timeMillis: START + 500 },
    });
    expect(harness.allows('ada', START + 300 + 1_199)).toBe(false);
    expect(harness.allows('ada', START + 300 + 1_200)).toBe(true);
  });

  it('denies requests without a timestamp while the key has grants ahead of group time', () => {
    const harness = harnessWith({ limit: 2 });
    harness.allows('ada', START + 5_000);
    // Judged at the timestamps ahead, they would be granted as fast as those move on, not as fast as time passes.
    expect(harness.one({ userId: 'ada' })).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMillis: 5_000,
    });
    expect(harness.machine.quickDenial({ userId: 'ada' }, START)).toMatchObject({ retryAfterMillis: 5_000 });
    harness.nowMillis += 5_000;
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: true, retryAfterMillis: 1_001 });
  });

  it('gives each rule and each user a budget of its own', () => {
    const harness = harnessWith({ id: 'a', limit: 1 }, { id: 'b', limit: 1 });
    const asked = harness.ask(
      { userId: 'ada' },
      { userId: 'ada', ruleId: 'b' },
      { userId: 'bob' },
      { userId: 'ada', ruleId: 'a' },
    );
    expect(asked.map((decision) => decision.allowed)).toEqual([true, true, true, false]);
  });

  it('refuses positions that go backwards', () => {
    const machine = new LimiterStateMachine();
    const command = { type: 'rules', table: tableOf(1, [{}]) } as const;
    machine.apply(command, { index: 5, term: 2, timeMillis: 100 });
    expect(() => machine.apply(command, { index: 5, term: 2, timeMillis: 100 })).toThrow(/index 5/);
    expect(() => machine.apply(command, { index: 6, term: 1, timeMillis: 100 })).toThrow(/term 1/);
    expect(() => machine.apply(command, { index: 6, term: 2, timeMillis: 99 })).toThrow(/group time 99/);
  });
});

describe('a rule table', () => {
  it('replaces another only when its version is greater', () => {
    const harness = harnessWith({ limit: 3 });
    harness.rules(tableOf(1, [{ limit: 9 }]));
    expect(harness.machine.ruleTable?.rules[0]?.limit).toBe(3);
    harness.rules(tableOf(2, [{ limit: 9 }]));
    expect(harness.machine.ruleTable?.rules[0]?.limit).toBe(9);
  });

  it('keeps recorded grants, even while the rule is removed', () => {
    const harness = harnessWith({ id: 'a', limit: 3 });
    harness.one({ userId: 'ada', cost: 3 });
    harness.rules(tableOf(2, [{ id: 'b' }]));
    expect(harness.one({ userId: 'ada', ruleId: 'a' }).refusal).toBe('unknown_rule');
    harness.rules(tableOf(3, [{ id: 'b' }, { id: 'a', limit: 4 }]));
    const asked = harness.ask({ userId: 'ada', ruleId: 'a' }, { userId: 'ada', ruleId: 'a' });
    expect(asked.map((decision) => decision.allowed)).toEqual([true, false]);
    harness.rules(tableOf(4, [{ id: 'a', limit: 2 }]));
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: false, remaining: 0, limit: 2 });
  });

  it('with a longer window counts the grants that are still recorded', () => {
    const harness = harnessWith({ limit: 2, windowMillis: 1_000 });
    harness.one({ userId: 'ada', cost: 2 });
    harness.nowMillis += 5_000;
    harness.rules(tableOf(2, [{ limit: 2, windowMillis: 10_000 }]));
    expect(harness.one({ userId: 'ada' })).toMatchObject({ allowed: false, retryAfterMillis: 5_001 });
  });
});

describe('a denied request', () => {
  it('changes nothing but the applied position', () => {
    const harness = harnessWith({ limit: 2 }, { id: 'closed', limit: 0 });
    harness.ask({ userId: 'ada', cost: 2, requestId: 'q1' }, { userId: 'bob', requestId: 'q2' });
    const before = harness.machine.hash();
    // Much later: keys are idle and request ids expired, but a denial must not clear them.
    harness.nowMillis += 10_000_000;
    for (let i = 0; i < 50; i += 1) {
      const denied = harness.ask(
        { userId: 'ada', timestampMillis: START + 10 },
        { userId: 'bob', cost: 3, timestampMillis: START + 1e12, requestId: `r${i}` },
        { userId: 'eve', ruleId: 'closed' },
        { userId: `new${i}`, cost: 1_000 },
        { userId: 'ada', ruleId: 'nowhere', requestId: 'q1' },
      );
      expect(denied.some((decision) => decision.allowed)).toBe(false);
    }
    expect(harness.machine.hash()).toBe(before);
    expect(harness.machine.applied.index).toBe(52);
    expect(harness.machine.stats()).toEqual({ keys: 2, grants: 2, requestIds: 2, customers: 0 });
  });
});

describe('a quick denial', () => {
  it('equals the decision of the log at that time, and changes nothing', () => {
    const harness = harnessWith({ limit: 2 }, { id: 'c', limit: 1, clock: 'cluster' });
    expect(harness.machine.quickDenial({ userId: 'ada' }, START)).toBeUndefined();
    harness.ask({ userId: 'ada', cost: 2 }, { userId: 'ada', ruleId: 'c' });
    const before = harness.machine.hash();
    const requests = [
      { userId: 'ada' },
      { userId: 'ada', timestampMillis: START - 20 },
      { userId: 'ada', ruleId: 'c', timestampMillis: 5 },
      { userId: 'new', cost: 3 },
      { userId: 'ada', ruleId: 'nowhere' },
    ];
    const quick = requests.map((request) => harness.machine.quickDenial(request, START + 700));
    expect(harness.machine.hash()).toBe(before);
    harness.nowMillis += 700;
    const applied = harness.ask(...requests);
    applied.forEach((decision, i) => {
      const { term, timeMillis } = decision.decided;
      expect(quick[i]).toEqual({ ...decision, decided: { term, index: 2, timeMillis } });
    });
    expect(harness.machine.quickDenial({ userId: 'ada' }, START + 1_001)).toBeUndefined();
  });

  it('is not given before the first rule table, nor at a time before the applied one', () => {
    const harness = new Harness();
    expect(harness.machine.quickDenial({ userId: 'ada' }, START)).toBeUndefined();
    harness.rules(tableOf(1, [{ limit: 1 }]));
    harness.one({ userId: 'ada' });
    harness.nowMillis += 900;
    harness.one({ userId: 'bob' });
    expect(harness.machine.quickDenial({ userId: 'ada' }, 0)).toMatchObject({ retryAfterMillis: 101 });
  });
});

describe('a request id', () => {
  it('gets the same answer again and charges nothing', () => {
    const harness = harnessWith({ limit: 3 });
    const asked = { userId: 'ada', cost: 2, requestId: 'q' };
    const first = harness.one(asked);
    harness.nowMillis += 120_000;
    expect(harness.one(asked)).toEqual(first);
    expect(harness.machine.isRemembered(asked)).toBe(true);
    expect(harness.machine.stats().grants).toBe(1);
  });

  it('gets its answer, and no quick denial, even when the budget is spent', () => {
    const harness = harnessWith({ limit: 1 });
    const request = { userId: 'ada', requestId: 'q' };
    const [first, again, other] = harness.ask(request, request, { userId: 'ada', requestId: 'other' });
    expect(first!.allowed).toBe(true);
    expect(again).toEqual(first);
    expect(other!.allowed).toBe(false);
    expect(harness.machine.quickDenial(request, START)).toBeUndefined();
    expect(harness.machine.quickDenial({ userId: 'ada', requestId: 'other' }, START)).toBeDefined();
  });

  it('is forgotten after the horizon, to the millisecond', () => {
    const harness = harnessWith({ limit: 3 });
    const first = harness.one({ userId: 'ada', requestId: 'q' });
    harness.nowMillis += 120_001;
    const second = harness.one({ userId: 'ada', requestId: 'q' });
    expect(second.decided).not.toEqual(first.decided);
    expect(harness.one({ userId: 'ada', requestId: 'q' })).toEqual(second);
  });

  it('belongs to one user, also if user and id have the same characters in a row', () => {
    const harness = harnessWith({});
    harness.one({ userId: 'bc', requestId: 'd' });
    expect(harness.machine.isRemembered({ userId: 'bc', requestId: 'd' })).toBe(true);
    expect(harness.machine.isRemembered({ userId: 'c', requestId: 'd' })).toBe(false);
    expect(harness.machine.isRemembered({ userId: 'b', requestId: 'cd' })).toBe(false);
  });

  it('of a denied request can be used for a new request', () => {
    const harness = harnessWith({ limit: 1 });
    harness.one({ userId: 'ada' });
    expect(harness.one({ userId: 'ada', requestId: 'q' }).allowed).toBe(false);
    harness.nowMillis += 1_001;
    expect(harness.one({ userId: 'ada', requestId: 'q' }).allowed).toBe(true);
  });

  it('keeps its expiry time when the horizon changes', () => {
    const harness = harnessWith({ limit: 100 });
    const long = harness.one({ userId: 'ada', requestId: 'long' });
    harness.rules(tableOf(2, [{ limit: 100 }], { requestIdHorizonMillis: 10 }));
    const short = harness.one({ userId: 'ada', requestId: 'short' });
    harness.nowMillis += 11;
    expect(harness.one({ userId: 'ada', requestId: 'long' })).toEqual(long);
    expect(harness.one({ userId: 'ada', requestId: 'short' })).not.toEqual(short);
    harness.nowMillis += 120_000;
    for (let i = 0; i < 10; i += 1) harness.one({ userId: 'bob' });
    expect(harness.machine.stats().requestIds).toBe(0);
  });

  it('takes memory in proportion to the rate of requests, not to their total number', () => {
    const harness = harnessWith({ limit: 1_000 });
    let highest = 0;
    for (let i = 0; i < 6_000; i += 1) {
      harness.nowMillis += 1_000;
      harness.one({ userId: `u${i % 10}`, requestId: `q${i}` });
      highest = Math.max(highest, harness.machine.stats().requestIds);
    }
    expect(highest).toBeLessThanOrEqual(122);
  });
});
