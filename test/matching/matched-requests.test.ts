/** Tests requests with limits in several partitions: they are charged under all of their limits or none. */
import { describe, expect, it } from 'vitest';
import type { AllowAnswer, Decision } from '../../src/api/answer.ts';
import { Bench, ruleSetOf, decision, DENIED, FROM, GONE, LOST } from './bench.ts';

function denialBy(ruleId: string, retryAfterMillis: number): Decision {
  return { ...(DENIED as { decision: Decision }).decision, ruleId, retryAfterMillis };
}

describe('a request whose limits are in one partition', () => {
  it('is asked once, under its own id, with all its windows', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(
      7,
      'rules: [{ id: user, key: user, windows: [{ limit: 2, per: minute }, { limit: 5, per: hour }] }]',
    );
    bench.ask({ user: 'ada' }, { cost: 2, requestId: 'r1', timestampMillis: 4 });
    expect(bench.asked).toHaveLength(1);
    expect(bench.of('user').request).toMatchObject({
      userId: 'user=ada',
      ruleId: 'user/minute',
      cost: 2,
      timestampMillis: 4,
      requestId: 'r1',
      matchedBy: 7,
      further: [{ userId: 'user=ada', ruleId: 'user/hour', cost: 2 }],
    });
    bench.of('user').answer(DENIED);
    expect(bench.reported).toEqual([{ answer: DENIED, partition: 0 }]);
  });

  it('is let through if no rule has a limit for it, or the rule is unlimited', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    bench.ask({ ip: '10.0.0.1' });
    expect(bench.reported).toEqual([{ answer: { kind: 'unlimited', rulesVersion: 7 }, partition: 0 }]);
    expect(bench.asked).toEqual([]);
  });

  it('is recognised as a retry by its own fields, in any order, not by the limits that rules find for it', () => {
    const bench = new Bench();
    bench.ask({ user: 'ada' }, { requestId: 'r1' });
    bench.of('*').answer(decision());
    const { askedDigest } = bench.of('user').request;
    bench.ruleSet = ruleSetOf(8, 'rules: [{ id: other, key: user, windows: { limit: 9, per: minute } }]');
    bench.ask({ nothing: '', user: 'ada' }, { requestId: 'r1', cost: 1 });
    expect(bench.of('user').request).toMatchObject({ ruleId: 'other/minute', askedDigest });
    const others = [
      { user: 'bob', cost: 1 },
      { user: 'ada', cost: 2 },
    ];
    for (const { user, cost } of others) {
      bench.ask({ user }, { requestId: 'r1', cost });
      expect(bench.of('user').request.askedDigest).not.toBe(askedDigest);
    }
  });
});

describe('a request whose limits are in several partitions', () => {
  it('reserves all but the first limit under derived ids, and then asks for the first under its own id', () => {
    const bench = new Bench();
    bench.ask({ ...FROM, endpoint: '/dear' }, { requestId: 'r1', cost: 2 });
    // Two reservations, then the shadow rule.
    expect(bench.asked.map(({ request }) => request.userId)).toEqual(['ip=10.0.0.1', '*', 'ip=10.0.0.1']);
    expect(bench.of('ip').request).toMatchObject({ ruleId: 'net/minute', cost: 6, requestId: '~1.2' });
    expect(bench.of('*').request).toMatchObject({ ruleId: 'all/minute', cost: 2, requestId: '~1.3' });
    bench.of('ip').answer(decision());
    expect(bench.asked).toHaveLength(3);
    bench.of('*').answer(decision({ ruleId: 'all/minute', limit: 100, remaining: 50 }));
    expect(bench.of('user').request).toMatchObject({ ruleId: 'user/minute', requestId: 'r1', cost: 2 });
    bench.of('user').answer(
      decision({
        ruleId: 'user/minute',
        limit: 2,
        remaining: 9,
        decided: { term: 2, index: 1, timeMillis: 1 },
      }),
    );
    expect(bench.reported).toMatchObject([
      {
        answer: {
          decision: {
            allowed: true,
            ruleId: 'net/minute',
            remaining: 4,
            decided: { term: 2, index: 1 },
            limits: [{ ruleId: 'user/minute' }, { ruleId: 'net/minute' }, { ruleId: 'all/minute' }],
          },
        },
      },
    ]);
    expect(bench.refunds()).toEqual([]);
  });

  it('gives its reservations back if one denies, and never asks for the first limit', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision());
    bench.of('*').answer(DENIED);
    expect(bench.reported).toMatchObject([
      { answer: { decision: { allowed: false, retryAfterMillis: 300 } }, partition: 3 },
    ]);
    expect(bench.refunds()).toEqual([{ ask: 'refund', userId: 'ip=10.0.0.1', requestId: '~1.2' }]);
    expect(bench.asked.some(({ request }) => request.userId.startsWith('user'))).toBe(false);
  });

  it('is answered with an error if there is one, else with the longest wait', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(DENIED);
    bench.of('*').answer(decision({ allowed: false, ruleId: 'all/minute', retryAfterMillis: 400 }));
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'all/minute' } } }]);
    bench.ask(FROM);
    bench.of('ip').answer(GONE);
    bench.of('*').answer(DENIED);
    expect(bench.reported[1]).toEqual({ answer: GONE, partition: 2 });
    expect(bench.refunds()).toEqual([]);
  });

  it('is denied before anything is reserved, if this node leads a partition that denies', () => {
    const bench = new Bench();
    bench.denied.set('*', denialBy('all/minute', 5)).set('user', denialBy('user/minute', 9));
    bench.ask({ user: 'ada' });
    expect(bench.asked).toEqual([]);
    expect(bench.reported).toMatchObject([{ answer: { decision: { ruleId: 'user/minute' } }, partition: 1 }]);
  });

  it('with an id is denied by this node only if it was not granted before', () => {
    const bench = new Bench();
    bench.denied.set('*', (DENIED as { decision: Decision }).decision);
    for (const requestId of ['r1', 'r2']) bench.ask({ user: 'ada' }, { requestId });
    expect(bench.asked.map(({ request }) => request)).toMatchObject([
      { userId: 'user=ada', requestId: 'r1', ifRemembered: true },
      { userId: 'user=ada', requestId: 'r2', ifRemembered: true },
    ]);
    expect(bench.reported).toEqual([]);
    const granted = { ...decision({ ruleId: 'user/minute' }), isRepeat: true } as AllowAnswer;
    bench.asked[0]!.answer(granted);
    bench.asked[1]!.answer({ kind: 'invalid', field: 'requestId', message: '' });
    expect(bench.reported).toEqual([
      { answer: { ...granted, key: 'user=ada' }, partition: 0 },
      { answer: DENIED, partition: 3 },
    ]);
  });

  it('gives all reservations back if the first limit denies', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision());
    bench.of('*').answer(decision());
    bench.of('user').answer(DENIED);
    expect(bench.refunds()).toHaveLength(2);
    expect(bench.reported).toHaveLength(1);
  });

  it('gets no denial after its deadline, also if the recall of an earlier grant took that long', () => {
    const bench = new Bench();
    bench.ask(FROM, { requestId: 'r1' });
    bench.of('ip').answer(DENIED);
    bench.of('*').answer(decision());
    bench.now += 10_000;
    bench.of('user').answer({ kind: 'invalid', field: 'requestId', message: '' });
    const answer = { kind: 'unavailable', reason: 'deadline', proposed: false };
    expect(bench.reported).toMatchObject([{ answer }]);
  });

  it('repeats the grant of an earlier attempt, even if other limits deny it now', () => {
    const bench = new Bench();
    bench.ask(FROM, { requestId: 'r1' });
    bench.of('ip').answer(decision());
    bench.of('*').answer(DENIED);
    expect(bench.reported).toEqual([]);
    expect(bench.of('user').request).toMatchObject({
      userId: 'user=ada',
      requestId: 'r1',
      ifRemembered: true,
      matchedBy: 7,
    });
    const first = { ...decision({ ruleId: 'user/minute' }), isRepeat: true } as AllowAnswer;
    bench.of('user').answer(first);
    expect(bench.reported).toEqual([{ answer: { ...first, key: 'user=ada' }, partition: 0 }]);
  });

  it.each([
    ['denied, if there was none', { kind: 'invalid', field: 'requestId', message: '' } as const, DENIED],
    ['undecided, if no partition answers', GONE, GONE],
  ])('that is denied after a recall of its id is %s', (_, remembered, answer) => {
    const bench = new Bench();
    bench.ask(FROM, { requestId: 'r1' });
    bench.of('ip').answer(DENIED);
    bench.of('*').answer(GONE);
    bench.of('user').answer(remembered);
    expect(bench.reported).toMatchObject([{ answer: answer === DENIED ? GONE : answer }]);
    bench.ask(FROM, { requestId: 'r2' });
    bench.of('ip').answer(DENIED);
    bench.of('*').answer(decision());
    bench.of('user').answer(remembered);
    expect(bench.reported[1]?.answer.kind).toBe(answer.kind);
  });

  it('gives nothing back while the first partition may have granted it', () => {
    const bench = new Bench();
    bench.ask(FROM);
    bench.of('ip').answer(decision());
    bench.of('*').answer(decision());
    bench.of('user').answer(LOST);
    expect(bench.refunds()).toEqual([]);
    expect(bench.reported).toEqual([{ answer: LOST, partition: 0 }]);
  });

  it('gives its reservations back if an earlier attempt got the first limit, with reservations of its own', () => {
    const bench = new Bench();
    bench.ask(FROM, { requestId: 'r1' });
    bench.of('ip').answer(decision());
    bench.of('*').answer(decision());
    const first = { ...decision({ ruleId: 'user/minute' }), isRepeat: true } as AllowAnswer;
    bench.of('user').answer(first);
    expect(bench.refunds()).toHaveLength(2);
    expect(bench.reported).toEqual([{ answer: { ...first, key: 'user=ada' }, partition: 0 }]);
  });
});

function grantAll(bench: Bench): void {
  const shadow = bench.shadow;
  for (const key of ['ip', '*', 'user'])
    bench.asked.findLast((one) => one !== shadow && one.request.userId.startsWith(key))?.answer(decision());
}

describe('a rule in shadow', () => {
  it('denies nothing; its denials are counted, and listed in the answer', () => {
    const bench = new Bench();
    bench.ask(FROM);
    expect(bench.shadow.request).toMatchObject({ userId: 'ip=10.0.0.1', ruleId: 'shadowed/minute' });
    bench.shadow.answer(decision({ allowed: false, ruleId: 'shadowed/minute', retryAfterMillis: 700 }));
    grantAll(bench);
    const wouldDeny = [{ ruleId: 'shadowed/minute', key: 'ip=10.0.0.1', limit: 10, retryAfterMillis: 700 }];
    expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: true }, wouldDeny } }]);
    expect(bench.tried).toEqual([{ ruleId: 'shadowed/minute', wouldAllow: false }]);
    expect(bench.refunds()).toEqual([]);
  });

  it('delays no answer: later decisions are only counted', () => {
    const bench = new Bench();
    bench.ask(FROM);
    grantAll(bench);
    expect(bench.reported).toHaveLength(1);
    expect(bench.reported[0]?.answer).not.toHaveProperty('wouldDeny');
    expect(bench.tried).toEqual([]);
    bench.shadow.answer(decision({ ruleId: 'shadowed/minute' }));
    expect(bench.tried).toEqual([{ ruleId: 'shadowed/minute', wouldAllow: true }]);
  });

  it.each(['before', 'after'])(
    'does not count a request that other rules deny, and gives back its own grant: %s',
    (when) => {
      const bench = new Bench();
      bench.ask(FROM);
      const shadow = bench.shadow;
      const requestId = 'requestId' in shadow.request ? shadow.request.requestId : '';
      const grant = decision({ ruleId: 'shadowed/minute' });
      if (when === 'before') shadow.answer(grant);
      bench.asked.findLast((one) => one !== shadow && one.request.userId.startsWith('ip'))?.answer(DENIED);
      bench.of('*').answer(DENIED);
      expect(bench.reported).toMatchObject([{ answer: { decision: { allowed: false } } }]);
      expect(bench.reported[0]?.answer).not.toHaveProperty('wouldDeny');
      if (when === 'after') shadow.answer(grant);
      expect(bench.tried).toEqual([]);
      expect(bench.refunds()).toEqual([{ ask: 'refund', userId: 'ip=10.0.0.1', requestId }]);
    },
  );

  it('is not asked if other rules deny at once', () => {
    const bench = new Bench();
    bench.denied.set('user', (DENIED as { decision: Decision }).decision);
    bench.ask(FROM);
    expect(bench.reported).toHaveLength(1);
    expect(bench.asked).toEqual([]);
  });

  it('does not count a retry that repeats its grant', () => {
    const bench = new Bench();
    bench.ask(FROM, { requestId: 'mine' });
    const shadow = bench.shadow;
    shadow.answer(decision({ ruleId: 'shadowed/minute' }));
    bench.of('*').answer(decision());
    bench.asked.find((one) => one !== shadow && one.request.userId.startsWith('ip'))?.answer(decision());
    bench.of('user').answer({ ...decision(), isRepeat: true } as AllowAnswer);
    expect(bench.reported).toHaveLength(1);
    expect(bench.tried).toEqual([]);
  });
});

describe('a request that can never be decided', () => {
  it.each([
    [{ user: 'x'.repeat(4_097) }, {}, 'descriptors', /too long/],
    [{ ip: '10.0.0.1', endpoint: '/dear' }, { cost: 500_000 }, 'cost', /at most 1000000/],
  ])('is invalid: %#', (descriptors, more, field, message) => {
    const bench = new Bench();
    bench.ask(descriptors, more);
    expect(bench.reported).toMatchObject([
      { answer: { kind: 'invalid', field, message: expect.stringMatching(message) as unknown } },
    ]);
  });
});

describe('a request of one user under one limit', () => {
  it.each([
    '{ id: one, key: user, windows: { limit: 9, per: minute } }',
    '{ id: one, key: user, cost: 3, windows: { limit: 9, per: minute } }',
    '{ id: one, key: [], windows: { limit: 9, per: minute } }',
    '{ id: one, match: { user: ada }, key: user, windows: { limit: 9, per: minute } }',
  ])('is decided by the limit that the rules find: %s', (rule) => {
    const ruleSet = ruleSetOf(7, `rules: [${rule}]`);
    for (const user of ['ada', 'a%b', 'x,y'])
      for (const cost of [undefined, 1, 2, 300_000]) {
        const bench = new Bench();
        bench.ruleSet = ruleSet;
        bench.ask({ user }, { cost });
        const found = ruleSet.limitsFor({ descriptors: new Map([['user', user]]), cost });
        const limits = found.kind === 'limits' ? found.enforced : [];
        expect(bench.asked.map(({ request }) => request)).toMatchObject(
          limits.map((limit) => ({
            userId: limit.userId,
            ruleId: limit.ruleId,
            cost: limit.cost,
            matchedBy: 7,
          })),
        );
      }
  });
});
