/** Tests what a client sends, repeats and answers, with a fake network and clock. */
import { describe, expect, it } from 'vitest';
import { A, denialOf, grantOf, Played, unavailableOf, watched } from './played.ts';

const ADA = { userId: 'ada' };
const TRIED = { rule: 'new/hour', key: 'user=ada', limit: 1, retryAfterMillis: 500 };
const HOPELESS = { rule: 'none/hour', key: 'user=ada', limit: 0 };

describe('a grant', () => {
  it('is requested with an id, and returned with its receipt', async () => {
    const played = new Played();
    const asked = watched(played.client.allow({ ...ADA, cost: 2 }));
    await played.settle();
    expect(played.last.requests).toEqual([{ userId: 'ada', cost: 2, requestId: 'id-1' }]);
    played.last.answer(grantOf());
    await played.settle();
    expect(asked.value).toEqual({
      kind: 'granted',
      allowed: true,
      rule: 'default',
      limit: 100,
      windowMillis: 60_000,
      remaining: 42,
      resetMillis: 60_000,
      rulesVersion: 1,
      decided: { partition: 0, term: 1, index: 1, position: 0, timeMillis: 1 },
    });
  });

  it.each([
    ['a status that no grant has', grantOf({ status: 201 })],
    ['allowed that is not true', grantOf({ allowed: 'true' })],
    ['no receipt', grantOf({ decided: undefined })],
    ['a denial by its status', grantOf({ status: 429 })],
    ['nothing', null],
  ])('is not read from an answer with %s', async (_, answer) => {
    const played = new Played({ requestIds: false });
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(answer);
    await played.settle();
    expect(asked.value).toBeUndefined();
    expect(asked.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });

  it.each([
    [{ unlimited: true }, { kind: 'unlimited', allowed: true, rulesVersion: 1 }],
    [
      { degraded: true, rules: ['r'] },
      { kind: 'degraded', allowed: true, by: 'rules' },
    ],
    [{ waitMillis: 70 }, { kind: 'granted', waitMillis: 70 }],
    [{ key: 'user=ada' }, { kind: 'granted', key: 'user=ada' }],
    [{ wouldDeny: [TRIED, HOPELESS] }, { kind: 'granted', wouldDeny: [TRIED, HOPELESS] }],
    [
      { wouldDeny: [TRIED], unlimited: true },
      { kind: 'unlimited', wouldDeny: [TRIED] },
    ],
    [{ wouldDeny: [7, { rule: 'new/hour', limit: 1 }] }, { kind: 'granted', wouldDeny: [] }],
  ])('%j is returned as the kind that it is', async (changes, expected) => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(grantOf(changes));
    await played.settle();
    expect(asked.value).toMatchObject(expected);
  });

  it('is not returned for a user that an operator has blocked', async () => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(grantOf({ status: 403, allowed: false, blocked: true }));
    await played.settle();
    expect(asked.value).toMatchObject({ kind: 'blocked', allowed: false });
    expect(asked.value).not.toHaveProperty('retryAfterMillis');
    const until = watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(grantOf({ status: 403, allowed: false, blocked: true, retryAfterMillis: 500 }));
    await played.settle();
    expect(until.value).toMatchObject({ kind: 'blocked', allowed: false, retryAfterMillis: 500 });
  });
});

describe('a request that no rule limits', () => {
  it('is denied where the rules deny it, and the denial is not remembered', async () => {
    const played = new Played();
    for (let i = 0; i < 2; i += 1) {
      const asked = watched(played.client.allow({ descriptors: { usr: 'ada' } }));
      await played.settle();
      played.last.answer({ status: 403, allowed: false, reason: 'unmatched', rulesVersion: 7 });
      await played.settle();
      expect(asked.value).toEqual({ kind: 'unmatched', allowed: false, rulesVersion: 7 });
    }
    expect(played.sent).toHaveLength(2);
  });
});

describe('a denial for a restore', () => {
  it('says so, and when it ends, also when it is remembered', async () => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(denialOf({ reason: 'restored', restoredMillis: 5_000, retryAfterMillis: 5_000 }));
    await played.settle();
    expect(asked.value).toMatchObject({ kind: 'denied', reason: 'restored', restoredMillis: 5_000 });
    const again = watched(played.client.allow(ADA));
    await played.settle();
    expect(again.value).toMatchObject({ kind: 'denied', isCached: true, reason: 'restored' });
  });
});

describe('requests of one turn of the event loop', () => {
  it('go in one batch, and each gets its own answer', async () => {
    const played = new Played();
    const asked = ['ada', 'bob', 'cy'].map((userId) => watched(played.client.allow({ userId })));
    await played.settle();
    expect(played.sent).toHaveLength(1);
    played.last.respond(200, { answers: [grantOf(), denialOf(), grantOf({ remaining: 7 })] });
    await played.settle();
    expect(asked.map(({ value }) => value?.kind)).toEqual(['granted', 'denied', 'granted']);
    expect(asked[2]?.value).toMatchObject({ remaining: 7 });
  });

  it('wait while the maximum number of batches is on its way to the node, and then go in one batch', async () => {
    const played = new Played({ nodes: [A], batchesPerNodeMax: 1, batchMax: 3 });
    for (let i = 0; i < 7; i += 1) watched(played.client.allow({ userId: `user-${i}` }));
    await played.settle();
    expect(played.sent.map(({ requests }) => requests.length)).toEqual([3]);
    played.last.answer(grantOf());
    await played.settle();
    expect(played.sent.map(({ requests }) => requests.length)).toEqual([3, 3]);
    played.last.answer(grantOf());
    await played.settle();
    expect(played.sent.map(({ requests }) => requests.length)).toEqual([3, 3, 1]);
  });

  it('go in batches of at most the size that nodes accept', async () => {
    const played = new Played({ nodes: [A] });
    const descriptors = Object.fromEntries(
      Array.from({ length: 16 }, (_, i) => [`d${i}`, 'x'.repeat(1_000)]),
    );
    for (let i = 0; i < 40; i += 1)
      watched(played.client.allow({ descriptors: { ...descriptors, d0: `${i}` } }));
    await played.settle();
    expect(played.sent.map(({ requests }) => JSON.stringify(requests).length < 500_100)).toEqual([
      true,
      true,
    ]);
    expect(played.sent.reduce((sum, { requests }) => sum + requests.length, 0)).toBe(40);
  });

  it('succeed if another one in the batch is malformed', async () => {
    const played = new Played({ requestIds: false });
    const [bad, good] = ['bad', 'good'].map((userId) => watched(played.client.allow({ userId })));
    await played.settle();
    const error = { type: 'invalid_request', field: 'rule', message: 'wrong' };
    played.last.respond(200, { answers: [{ status: 400, allowed: false, error }, grantOf()] });
    await played.settle();
    expect(bad?.error).toMatchObject({ code: 'INVALID_REQUEST', field: 'rule', message: 'wrong' });
    expect(good?.value).toMatchObject({ allowed: true });
    expect(played.sent).toHaveLength(1);
  });

  it('are all refused if the node refuses the list', async () => {
    const played = new Played({ requestIds: false });
    const asked = ['a', 'b'].map((userId) => watched(played.client.allow({ userId })));
    await played.settle();
    const error = { type: 'invalid_request', field: 'requests', message: 'requests must be a list' };
    played.last.respond(400, { allowed: false, error });
    await played.settle();
    for (const each of asked) expect(each.error).toMatchObject({ code: 'REFUSED', isDefinite: true });
  });
});

describe('a request is repeated', () => {
  it('under its id, at another node, if its connection broke', async () => {
    const played = new Played();
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    const first = played.last;
    first.fail(true);
    await played.pass(100);
    expect(played.last.requests).toEqual(first.requests);
    expect(played.last.origin).not.toBe(first.origin);
    played.last.answer(grantOf());
    await played.settle();
    expect(asked.value).toMatchObject({ allowed: true });
  });

  it('under its id, if a node did not answer within the time of an attempt', async () => {
    const played = new Played({ attemptMillis: 400 });
    watched(played.client.allow(ADA));
    await played.pass(500);
    expect(played.sent).toHaveLength(2);
    expect(played.sent[1]?.requests).toEqual(played.sent[0]?.requests);
  });

  it.each([
    ['nothing was sent', (played: Played): void => played.last.fail(false)],
    [
      'certainly nothing was counted',
      (played: Played): void => played.last.answer(unavailableOf('no_leader', false)),
    ],
    [
      'the node accepts no requests',
      (played: Played): void => played.last.respond(503, unavailableOf('draining', false)),
    ],
  ])('without an id, if %s', async (_, fail) => {
    const played = new Played({ requestIds: false });
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    fail(played);
    await played.pass(100);
    played.last.answer(grantOf());
    await played.settle();
    expect(asked.value).toMatchObject({ allowed: true });
    expect(played.sent.map(({ requests }) => requests)).toEqual([[{ userId: 'ada' }], [{ userId: 'ada' }]]);
  });

  it.each([
    ['its connection broke', (played: Played): void => played.last.fail(true)],
    ['it was proposed', (played: Played): void => played.last.answer(unavailableOf('deadline', true))],
    ['a proxy failed', (played: Played): void => played.last.respond(502, 'Bad Gateway')],
    ['the node failed', (played: Played): void => played.last.respond(500, { allowed: false })],
  ])('never without an id, if %s', async (_, fail) => {
    const played = new Played({ requestIds: false });
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    fail(played);
    await played.pass(10_000);
    expect(played.sent).toHaveLength(1);
    expect(asked.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });

  it('after pauses that grow, and never after its deadline', async () => {
    const played = new Played({ deadlineMillis: 2_000 });
    const asked = watched(played.client.allow(ADA));
    for (let i = 0; i < 200; i += 1) {
      await played.pass(20);
      if (played.sent.at(-1)?.isOpen === true) played.last.answer(unavailableOf('no_leader', false));
    }
    expect(asked.error).toMatchObject({ code: 'UNAVAILABLE', isDefinite: true, reason: 'no_leader' });
    const times = played.sent.map(({ atMillis }) => atMillis);
    expect(Math.max(...times)).toBeLessThan(3_000);
    const pauses = times.slice(1).map((at, i) => at - (times[i] ?? 0));
    expect(pauses.at(-1)).toBeGreaterThan(3 * (pauses[0] ?? 0));
    expect(times.length).toBeLessThan(12);
  });

  it('no sooner than after a second at a node that is overloaded', async () => {
    const played = new Played();
    watched(played.client.allow(ADA));
    await played.settle();
    played.last.answer(unavailableOf('overloaded', false));
    await played.pass(999);
    expect(played.sent).toHaveLength(1);
    await played.pass(1_001);
    expect(played.sent).toHaveLength(2);
  });

  it('and stays indefinite, once an attempt may have counted', async () => {
    const played = new Played({ deadlineMillis: 1_000 });
    const asked = watched(played.client.allow(ADA));
    await played.settle();
    played.last.fail(true);
    await played.pass(50);
    played.last.answer(unavailableOf('overloaded', false));
    await played.settle();
    expect(asked.error).toMatchObject({ code: 'INDEFINITE', isDefinite: false });
  });
});

describe('events', () => {
  it('report batches, retries and answers, and name no user', async () => {
    const played = new Played();
    watched(played.client.allow(ADA));
    await played.settle();
    played.last.fail(true);
    await played.pass(100);
    played.last.answer(grantOf());
    await played.settle();
    const types = played.events.map(({ type }) => type);
    expect(types).toEqual(['sent', 'received', 'retry', 'sent', 'received', 'answered']);
    expect(played.events.at(-1)).toMatchObject({
      outcome: 'granted',
      attempts: 2,
      partition: 0,
      tookMillis: 100,
    });
    expect(JSON.stringify(played.events)).not.toContain('ada');
  });
});
