/** Tests requests of lists of descriptors: each list gets an outcome, and all are charged or none. */
import { describe, expect, it } from 'vitest';
import { ruleSetOf, decision, DENIED, GONE } from './bench.ts';
import { DOCUMENT, IP, IP_RULE, ListedBench, listOf, USER, USER_RULE } from './listed-bench.ts';

describe('a request of lists', () => {
  it('is charged under the rule of each list, and reports the status of each', () => {
    const bench = new ListedBench();
    bench.askLists([listOf({ ip: '10.0.0.1' }, { cost: 3 }), USER, listOf({ other: 'x' })]);
    expect(bench.of('ip').request).toMatchObject({ userId: 'ip=10.0.0.1', ruleId: IP_RULE, cost: 3 });
    bench.of('ip').answer(decision({ ruleId: IP_RULE, remaining: 2 }));
    expect(bench.of('user').request).toMatchObject({ ruleId: USER_RULE, cost: 1, matchedBy: 7 });
    bench.of('user').answer(decision({ ruleId: USER_RULE, remaining: 4 }));
    expect(bench.listed).toMatchObject([
      {
        kind: 'listed',
        allowed: true,
        lists: [
          { kind: 'limited', isOver: false, name: '', limitStatus: { ruleId: IP_RULE, remaining: 2 } },
          {
            kind: 'limited',
            isOver: false,
            name: 'per_user',
            limitStatus: { ruleId: USER_RULE, remaining: 4 },
          },
          { kind: 'free' },
        ],
      },
    ]);
  });

  it('is also under rules for sets of descriptors, for which the order of a list does not matter', () => {
    const bench = new ListedBench();
    bench.ruleSet = ruleSetOf(
      7,
      'rules: [{ id: user, key: user, windows: [{limit: 9, per: minute}, {limit: 99, per: day}] }, { id: ip, key: ip, shadow: true, windows: {limit: 1, per: day} }]',
    );
    bench.askLists([USER, IP, listOf({ other: 'x' })]);
    const { request, answer } = bench.of('user');
    expect(request).toMatchObject({
      userId: 'user=ada',
      ruleId: 'user/minute',
      further: [{ ruleId: 'user/day' }],
    });
    const limits = ['user/minute', 'user/day'].map((ruleId, i) => ({
      ruleId,
      limit: 9,
      windowMillis: 60_000,
      remaining: 5 - i,
      retryAfterMillis: 0,
      resetMillis: 9,
    }));
    answer(decision({ ruleId: 'user/day', remaining: 4, limits }));
    expect(bench.listed).toMatchObject([
      {
        allowed: true,
        lists: [
          { kind: 'limited', isOver: false, limitStatus: { ruleId: 'user/day', remaining: 4 } },
          { kind: 'free' },
          { kind: 'free' },
        ],
      },
    ]);
  });

  it('is denied by one list, gives back the grant of the other, and reports which one denied', () => {
    const bench = new ListedBench();
    bench.askLists([USER, IP, listOf({ ip: '10.0.0.2' })]);
    const { askedDigest: _, ...asked } = bench.of('ip').request;
    expect(asked).toMatchObject({ userId: 'ip=10.0.0.1', further: [{ userId: 'ip=10.0.0.2' }] });
    const [full, free] = [300, 0].map((retryAfterMillis) => ({
      ruleId: IP_RULE,
      limit: 5,
      windowMillis: 1_000,
      remaining: retryAfterMillis === 0 ? 5 : 0,
      retryAfterMillis,
      resetMillis: 900,
    }));
    bench.of('ip').answer(decision({ ...full!, allowed: false, limits: [free!, full!] }));
    expect(bench.listed).toMatchObject([
      {
        allowed: false,
        lists: [
          { kind: 'limited', isOver: false, name: 'per_user' },
          { kind: 'limited', isOver: false, limitStatus: { remaining: 5 } },
          { kind: 'limited', isOver: true, limitStatus: { remaining: 0, retryAfterMillis: 300 } },
        ],
      },
    ]);
    expect(bench.asked.some(({ request }) => request.userId.startsWith('user'))).toBe(false);
  });

  it('reports the remaining cost as if the given-back cost had never been charged', () => {
    const bench = new ListedBench();
    bench.askLists([USER, listOf({ ip: '10.0.0.1' }, { cost: 2 })]);
    bench.of('ip').answer(decision({ ruleId: IP_RULE, limit: 5, remaining: 3 }));
    bench.of('user').answer(DENIED);
    expect(bench.listed).toMatchObject([
      { allowed: false, lists: [{ isOver: true }, { isOver: false, limitStatus: { remaining: 5 } }] },
    ]);
    expect(bench.refunds()).toMatchObject([{ userId: 'ip=10.0.0.1' }]);
  });

  it.each([
    ['for ever', 0, undefined, { kind: 'limited', isOver: true, name: '' }],
    ['for a time', 700, 708, { kind: 'limited', isOver: true, name: '', blockedMillis: 700 }],
  ])(
    'reports how long a key is blocked that is blocked %s, for a request and for a peek',
    (_, retryAfterMillis, until, reported) => {
      const bench = new ListedBench();
      bench.askLists([IP]);
      bench
        .of('ip')
        .answer(decision({ allowed: false, isBlocked: true, limit: 0, remaining: 0, retryAfterMillis }));
      bench.askLists([listOf({ ip: '10.0.0.1' }, { cost: 0 })]);
      const decided = { term: 1, index: 5, timeMillis: 8 };
      const block = { isBlocked: true, ...(until !== undefined && { blockedUntilMillis: until }) } as const;
      bench.peeks[0]!.answer({
        kind: 'keyStatus',
        keyStatus: { limits: [], ...block, decided, rulesVersion: 7 },
      });
      expect(bench.listed.map((answer) => answer.kind === 'listed' && answer.lists)).toEqual([
        [reported],
        [reported],
      ]);
    },
  );

  it('is unavailable if one of its limits is', () => {
    const bench = new ListedBench();
    bench.askLists([USER, IP]);
    bench.of('ip').answer(GONE);
    expect(bench.listed).toEqual([GONE]);
  });

  it('counts equal lists together, and asks once for the sum', () => {
    const bench = new ListedBench();
    bench.askLists([USER, USER]);
    expect(bench.asked.map(({ request }) => request)).toMatchObject([{ userId: 'user=ada', cost: 2 }]);
  });

  it('is under the rule of all its descriptors in order, and no shorter one', () => {
    const bench = new ListedBench();
    bench.askLists([listOf({ user: 'ada', path: '/dear' })]);
    expect(bench.asked.map(({ request }) => request)).toMatchObject([
      { userId: 'user=ada', ruleId: 'edge|user|path=/dear/hour' },
    ]);
    bench.askLists([listOf({ user: 'ada', path: '/cheap' })]);
    bench.askLists([USER], 'elsewhere');
    expect(bench.asked).toHaveLength(1);
    expect(bench.listed).toMatchObject([
      { allowed: true, lists: [{ kind: 'free' }] },
      { allowed: true, lists: [{ kind: 'free' }] },
    ]);
  });

  it('is not under a rule that another list replaces, and reports no limit', () => {
    const bench = new ListedBench();
    bench.askLists([USER, listOf({ vip: 'yes' })]);
    expect(bench.asked).toEqual([]);
    expect(bench.listed).toMatchObject([{ allowed: true, lists: [{ kind: 'free' }, { kind: 'unlimited' }] }]);
  });

  it('is let through if its descriptors end without a limit, and reports no limit', () => {
    const bench = new ListedBench();
    bench.askLists([listOf({ probe: 'x', path: '/health' })]);
    expect(bench.asked).toEqual([]);
    expect(bench.listed).toMatchObject([{ allowed: true, lists: [{ kind: 'free' }] }]);
    bench.askLists([listOf({ probe: 'x', path: '/other' })]);
    expect(bench.asked).toHaveLength(1);
  });

  it('asks shadow rules without waiting for them', () => {
    const bench = new ListedBench();
    bench.askLists([listOf({ shadow: 'x' })]);
    expect(bench.asked.map(({ request }) => request)).toMatchObject([{ userId: 'shadow=x' }]);
    expect(bench.listed).toMatchObject([{ allowed: true, lists: [{ kind: 'free' }] }]);
  });

  it('is under the limit that it states, and then under no rule', () => {
    const bench = new ListedBench();
    const limit = { limit: 3, windowMillis: 60_000 };
    bench.askLists([listOf({ shadow: 'x' }, { limit })]);
    expect(bench.asked.map(({ request }) => request)).toMatchObject([
      { userId: 'domain=edge,shadow=x', ruleId: '3/60000ms', cost: 1 },
    ]);
  });

  it('is refused if it has more limits than one decision can have', () => {
    const bench = new ListedBench();
    bench.askLists(Array.from({ length: 17 }, (_, i) => listOf({ user: String(i) })));
    expect(bench.listed).toMatchObject([{ kind: 'invalid', field: 'descriptors' }]);
    expect(bench.asked).toEqual([]);
  });

  it('is unavailable while this node knows no rules', () => {
    const bench = new ListedBench();
    bench.ruleSet = 'starting';
    bench.askLists([USER]);
    // A stated limit applies beside those of rules, and is never left out.
    bench.askLists([listOf({ user: 'ada' }, { limit: { limit: 3, windowMillis: 60_000 } })]);
    expect(bench.listed).toMatchObject([
      { kind: 'unavailable', reason: 'starting' },
      { kind: 'unavailable', reason: 'starting' },
    ]);
  });
});

describe('a cost above a limit', () => {
  const DEAR = listOf({ ip: '10.0.0.1' }, { cost: 1_000_001 });

  const OVER = { isOver: true, limitStatus: { limit: 5, remaining: 0, retryAfterMillis: 1_000 } };

  it.each([
    ['alone', [DEAR]],
    ['as a sum', [600_000, 600_000].map((cost) => listOf({ ip: '10.0.0.1' }, { cost }))],
  ])('is over the limit, and no partition is asked: %s', (_, lists) => {
    const bench = new ListedBench();
    bench.askLists([USER, ...lists]);
    expect(bench.listed).toMatchObject([
      { kind: 'listed', allowed: false, lists: [{ isOver: false }, ...lists.map(() => OVER)] },
    ]);
    expect([bench.asked, bench.peeks]).toEqual([[], []]);
  });

  it('is over the limit if only the leader knows that limit, and other grants are given back', () => {
    const bench = new ListedBench();
    bench.askLists([USER, listOf({ ip: '10.0.0.1' }, { cost: 6 })]);
    bench.of('ip').answer({ kind: 'invalid', field: 'cost', message: 'too much' });
    expect(bench.listed).toMatchObject([{ allowed: false, lists: [{ isOver: false }, OVER] }]);
    bench.askLists([listOf({ user: 'ada' }, { cost: 11 }), IP]);
    bench.of('ip').answer(decision({ ruleId: IP_RULE, limit: 5, remaining: 4 }));
    bench.of('user').answer({ kind: 'invalid', field: 'cost', message: 'too much' });
    expect(bench.listed[1]).toMatchObject({ allowed: false, lists: [{ isOver: true }, { isOver: false }] });
    expect(bench.refunds()).toMatchObject([{ userId: 'ip=10.0.0.1' }]);
  });

  it('is over all limits of its key if it exceeds the smallest', () => {
    const bench = new ListedBench();
    bench.askLists([listOf({ user: 'ada' }, { cost: 9 })]);
    bench.of('user').answer({ kind: 'invalid', field: 'cost', message: 'too much' });
    expect(bench.listed).toMatchObject([{ allowed: false, lists: [{ isOver: true }] }]);
  });

  it('is allowed if no limit applies, or only shadow rules', () => {
    const bench = new ListedBench();
    bench.askLists([
      listOf({ other: 'x' }, { cost: 1_000_001 }),
      listOf({ shadow: 'x' }, { cost: 1_000_001 }),
    ]);
    expect(bench.listed).toMatchObject([{ allowed: true, lists: [{ kind: 'free' }, { kind: 'free' }] }]);
    expect(bench.asked).toEqual([]);
  });

  it('is charged nowhere if only newer rules limit it', () => {
    const bench = new ListedBench();
    const free = listOf({ other: 'x' }, { cost: 1_000_001 });
    bench.askLists([free, listOf({ ip: '10.0.0.1' }, { cost: 0 }), USER]);
    bench.ruleSet = ruleSetOf(
      8,
      `${DOCUMENT}  - { key: other, rate_limit: { unit: second, requests_per_unit: 1 } }\n`,
    );
    bench.stand(0);
    expect([bench.listed, bench.asked]).toMatchObject([
      [{ kind: 'unavailable', reason: 'rules_changed' }],
      [],
    ]);
  });
});

describe('a list of cost 0', () => {
  const CHECK = listOf({ ip: '10.0.0.1' }, { cost: 0 });

  it('is peeked at before anything is charged', () => {
    const bench = new ListedBench();
    bench.askLists([USER, CHECK]);
    expect(bench.peeks.map(({ request }) => request)).toEqual([
      { ask: 'peek', userId: 'ip=10.0.0.1', ruleId: IP_RULE },
    ]);
    expect(bench.asked).toEqual([]);
    bench.stand(0);
    expect(bench.asked.map(({ request }) => request)).toMatchObject([{ userId: 'user=ada' }]);
    bench.of('user').answer(decision({ ruleId: USER_RULE }));
    expect(bench.listed).toMatchObject([
      { allowed: true, lists: [{ isOver: false }, { isOver: false, limitStatus: { remaining: 1 } }] },
    ]);
  });

  it('denies the request if nothing is left, and nothing is charged', () => {
    const bench = new ListedBench();
    bench.askLists([USER, CHECK]);
    bench.stand(400);
    expect(bench.asked).toEqual([]);
    expect(bench.listed).toMatchObject([{ allowed: false, lists: [{ isOver: false }, { isOver: true }] }]);
    expect(bench.listed[0]).not.toHaveProperty('decided');
  });

  it('makes the request unavailable if no peek is possible or the rules have changed', () => {
    const bench = new ListedBench();
    bench.askLists([CHECK]);
    bench.peeks[0]!.answer(GONE);
    bench.askLists([CHECK]);
    bench.peeks[1]!.answer({ kind: 'invalid', field: 'rule', message: 'none such' });
    expect(bench.listed).toMatchObject([GONE, { kind: 'unavailable', reason: 'rules_changed' }]);
  });
});
