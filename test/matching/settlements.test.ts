/** Tests settlements in several partitions: all are asked at once, and nothing is reserved. */
import { describe, expect, it } from 'vitest';
import type { ListedAnswer } from '../../src/api/listed.ts';
import { settleRequest } from '../../src/matching/settlements.ts';
import { Bench, ruleSetOf, decision, FROM, GONE, limitStatus, LOST } from './bench.ts';

const RULES = `
rules:
  - { id: user, key: user, windows: { limit: 2, per: minute } }
  - { id: net, key: ip, windows: { limit: 10, per: minute } }
`;

function bench(): Bench {
  const made = new Bench();
  made.ruleSet = ruleSetOf(7, RULES);
  return made;
}

function settled(more: object = {}): Bench {
  const made = bench();
  made.ask(FROM, { cost: 5, settle: true, ...more });
  return made;
}

const OVER = decision({ ruleId: 'user/minute', remaining: 0, retryAfterMillis: 60_000 });
const RULES_CHANGED = { kind: 'unavailable', reason: 'rules_changed', proposed: false } as const;

describe('a settlement', () => {
  it('is asked of all partitions at once, under one id, and reserves nothing', () => {
    const { asked } = settled({ requestId: 'a7' });
    expect(asked.map(({ request }) => request)).toMatchObject([
      { userId: 'user=ada', cost: 5, settle: true, requestId: 'a7' },
      { userId: 'ip=10.0.0.1', cost: 5, settle: true, requestId: 'a7' },
    ]);
  });

  it('is answered with the limit that has the least left, and lists all charged limits', () => {
    const made = settled();
    made.of('ip').answer(decision());
    expect(made.reported).toEqual([]);
    made.of('user').answer(OVER);
    expect(made.reported).toMatchObject([
      {
        answer: {
          kind: 'decision',
          key: 'user=ada',
          decision: {
            allowed: true,
            ruleId: 'user/minute',
            remaining: 0,
            limits: [{ ruleId: 'user/minute' }, { ruleId: 'net/minute' }],
          },
        },
      },
    ]);
  });

  it('always gets an id in several partitions, and needs none in one', () => {
    const ids = settled().asked.map(({ request }) => 'requestId' in request && request.requestId);
    expect(ids[0]).toEqual(expect.any(String));
    expect(new Set(ids).size).toBe(1);
    const alone = bench();
    alone.ask({ user: 'ada' }, { settle: true });
    expect(alone.asked.map(({ request }) => request)).toMatchObject([{ requestId: undefined }]);
  });

  it('is repeated under the same id if the rules were changing, so no partition charges it twice', () => {
    const made = settled();
    made.of('user').answer(OVER);
    made.of('ip').answer(RULES_CHANGED);
    expect(made.reported).toEqual([]);
    made.requests.tick();
    const ids = made.asked.map(({ request }) => 'requestId' in request && request.requestId);
    expect(ids).toHaveLength(4);
    expect(new Set(ids).size).toBe(1);
  });

  it('has an unknown outcome if one partition charged it, and rules were changing until its deadline', () => {
    const made = settled();
    made.of('user').answer(OVER);
    made.now += 1_000;
    made.of('ip').answer(RULES_CHANGED);
    expect(made.reported).toMatchObject([{ answer: { kind: 'unavailable', proposed: true } }]);
  });

  it.each([
    [
      'has an unknown outcome if one partition does not answer and another charged it',
      decision(),
      GONE,
      true,
    ],
    ['has an unknown outcome if one partition does not know', GONE, LOST, true],
    ['is certainly not charged if no partition had a leader', GONE, GONE, false],
  ])('%s', (_, one, other, proposed) => {
    const made = settled();
    made.of('user').answer(one);
    made.of('ip').answer(other);
    expect(made.reported).toMatchObject([{ answer: { kind: 'unavailable', proposed } }]);
    expect(made.refunds()).toEqual([]);
  });

  it('is a different request from a grant under the same id', () => {
    const digests = [{ settle: true } as const, {}].map((more) => {
      const made = bench();
      made.ask({ user: 'ada' }, { requestId: 'a7', ...more });
      return made.asked.map(({ request }) => 'askedDigest' in request && request.askedDigest);
    });
    expect(digests[0]).not.toEqual(digests[1]);
  });

  it('is charged under rules in shadow as well', () => {
    const made = new Bench();
    made.ask(FROM, { cost: 5, settle: true });
    expect(made.shadow.request).toMatchObject({ settle: true });
  });

  it('of a blocked customer is charged', () => {
    const made = bench();
    made.ruleSet = ruleSetOf(7, 'rules: [{ id: user, key: user, windows: { limit: 2, per: minute } }]');
    const record = { version: 4, overrides: [], isBlocked: true };
    const outcome = { isDone: true, record, decided: { term: 1, index: 4, timeMillis: 8 }, rulesVersion: 7 };
    const from = { user: 'ada', customer: 'acme' };
    for (const settle of [true, undefined] as const) {
      made.ask(from, settle && { settle });
      // It gets the record first.
      for (let i = 0; i < made.asked.length; i += 1) {
        const { request, answer } = made.asked[i]!;
        if (request.ask === 'customer') answer({ kind: 'customer', outcome } as never);
        else answer(decision());
      }
      made.asked.length = 0;
    }
    expect(made.reported.map(({ answer }) => answer)).toMatchObject([
      { kind: 'decision', decision: { allowed: true } },
      { kind: 'decision', decision: { allowed: false, isBlocked: true } },
    ]);
  });
});

describe('a request of a gateway under a post-paid rule', () => {
  const DOCUMENT = `
domain: edge
descriptors:
  - key: model
    rate_limit: { unit: hour, requests_per_unit: 1000, post_paid: true }
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 10 }
`;

  function asked(...lists: readonly (readonly [string, string, number])[]): [Bench, ListedAnswer[]] {
    const made = new Bench();
    const reported: ListedAnswer[] = [];
    made.ruleSet = ruleSetOf(7, DOCUMENT);
    const request = {
      domain: 'edge',
      lists: lists.map(([key, value, cost]) => ({ entries: [{ key, value }], cost })),
    };
    made.requests.askListed(
      request,
      () => expect.fail('no peek is expected'),
      (answer) => reported.push(answer),
    );
    return [made, reported];
  }

  it('is charged without denial under that rule, and decided normally under others', () => {
    const [made, reported] = asked(['model', 'big', 1_500], ['user', 'ada', 1]);
    expect(made.of('model').request).toMatchObject({ cost: 1_500, settle: true });
    made.of('model').answer(decision({ ruleId: 'edge|model/hour', remaining: 0, retryAfterMillis: 90 }));
    expect(made.of('user').request.settle).toBeUndefined();
    made.of('user').answer(decision({ ruleId: 'edge|user/minute', remaining: 4 }));
    expect(reported).toMatchObject([
      { allowed: true, lists: [{ isOver: false, limitStatus: { remaining: 0 } }, { isOver: false }] },
    ]);
  });

  it('is charged the allowed maximum if its cost is higher', () => {
    const [made] = asked(['model', 'big', 1_000_001]);
    expect(made.of('model').request).toMatchObject({ cost: 1_000_000, settle: true });
    const [twice] = asked(['model', 'big', 600_000], ['model', 'big', 600_000]);
    expect(twice.of('model').request).toMatchObject({ cost: 1_000_000, settle: true });
  });
});

describe('a settlement of a request by its id', () => {
  const SETTLED = { cost: 7, settle: true, requestId: 'r1' } as const;
  const GIVEN_BACK = {
    kind: 'refund',
    refund: {
      refunded: true,
      ruleId: 'user/minute',
      cost: 5,
      decided: { term: 1, index: 4, timeMillis: 8 },
      rulesVersion: 7,
    },
  } as const;

  function settledById(): Bench {
    const made = bench();
    settleRequest(
      made.requests,
      { descriptors: new Map([['user', 'ada']]), ...SETTLED },
      (answer, partition) => made.reported.push({ answer, partition }),
    );
    return made;
  }

  it('charges the true cost once, and then gives back its estimate', () => {
    const made = settledById();
    expect(made.asked.map(({ request }) => request)).toMatchObject([
      { userId: 'user=ada', cost: 7, settle: true, requestId: 'r1#settled' },
    ]);
    made.asked[0]?.answer(OVER);
    expect(made.reported).toEqual([]);
    expect(made.refunds()).toMatchObject([{ userId: 'user=ada', requestId: 'r1' }]);
    made.asked[1]?.answer(GIVEN_BACK);
    expect(made.reported).toMatchObject([{ answer: { decision: { allowed: true, remaining: 0 } } }]);
  });

  it('has its own id, also if the id of its request is very long', () => {
    const ids = ['x', 'y'].map((letter) => {
      const made = new Bench();
      made.ruleSet = ruleSetOf(7, RULES);
      const question = { descriptors: new Map([['user', 'ada']]), ...SETTLED, requestId: letter.repeat(128) };
      settleRequest(made.requests, question, () => {});
      const request = made.asked[0]?.request;
      return request !== undefined && 'requestId' in request ? (request.requestId ?? '') : '';
    });
    expect(ids.map((id) => id.length <= 128 && id.endsWith('#settled'))).toEqual([true, true]);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it('reports the remaining cost after the estimate was refunded', () => {
    const made = settledById();
    made.keyStatuses.set('user/minute', limitStatus('user/minute', { remaining: 3, retryAfterMillis: 0 }));
    made.asked[0]?.answer(OVER);
    made.asked[1]?.answer(GIVEN_BACK);
    expect(made.peekedAt).toMatchObject([
      { request: { userId: 'user=ada', ruleId: 'user/minute', cost: 1 }, deadlineMillis: 1_500 },
    ]);
    const { decision: settledDecision } = OVER as Extract<typeof OVER, { kind: 'decision' }>;
    expect(made.reported).toMatchObject([
      {
        answer: {
          decision: { allowed: true, remaining: 3, retryAfterMillis: 0, decided: settledDecision.decided },
          key: 'user=ada',
        },
      },
    ]);
  });

  it('reports the remaining cost before the refund if the rules have changed', () => {
    const made = settledById();
    made.asked[0]?.answer(OVER);
    made.ruleSet = ruleSetOf(8, RULES);
    made.asked[1]?.answer(GIVEN_BACK);
    expect(made.peekedAt).toEqual([]);
    expect(made.reported).toMatchObject([{ answer: { decision: { remaining: 0 } } }]);
  });

  it('has an unknown outcome if the estimate stays charged in another partition', () => {
    const made = settledById();
    made.ruleSet = ruleSetOf(
      7,
      `rules:
  - { id: user, key: user, windows: { limit: 9, per: minute } }
  - { id: all, windows: { limit: 9, per: minute } }
`,
    );
    made.asked[0]?.answer(decision());
    made.asked[1]?.answer({ ...GIVEN_BACK, refund: { ...GIVEN_BACK.refund, attempt: 5 } });
    made.of('*').answer(GONE);
    expect(made.reported).toMatchObject([{ answer: { kind: 'unavailable', proposed: true } }]);
  });

  it('is charged even if no grant is remembered under its id', () => {
    const made = settledById();
    made.asked[0]?.answer(decision());
    made.asked[1]?.answer({ ...GIVEN_BACK, refund: { ...GIVEN_BACK.refund, refunded: false, cost: 0 } });
    expect(made.reported).toMatchObject([{ answer: { decision: { allowed: true } } }]);
  });

  it('has an unknown outcome if its estimate may still be charged', () => {
    const made = settledById();
    made.asked[0]?.answer(decision());
    made.asked[1]?.answer(GONE);
    expect(made.reported).toMatchObject([{ answer: { kind: 'unavailable', proposed: true } }]);
  });

  it.each([
    ['it may be charged or not', LOST, true],
    ['it is certainly not charged', GONE, false],
  ])('gives nothing back if %s', (_, answer, proposed) => {
    const made = settledById();
    made.asked[0]?.answer(answer);
    expect(made.reported).toMatchObject([{ answer: { kind: 'unavailable', proposed } }]);
    expect(made.refunds()).toEqual([]);
  });
});
