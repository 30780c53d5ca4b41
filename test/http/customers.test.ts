/** Operators' actions on one key over HTTP: the requests to the node, the answers, and the callers that are refused. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { denialOf, Listener, type HttpBody, PARTITION } from './fixtures.ts';

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
});

afterEach(() => listener.app.close());

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: HttpBody;
}

async function ask(
  method: 'GET' | 'PUT' | 'DELETE' | 'POST',
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await listener.app.inject({ method, url, headers: { ...type, ...headers }, ...payload });
  return { status: response.statusCode, headers: response.headers, body: response.json() };
}

describe('/v1/customers/{id}', () => {
  it('is returned with its version, which is its ETag', async () => {
    const { status, headers, body } = await ask('GET', '/v1/customers/a%2Fb');
    expect(listener.customers).toEqual([{ customerId: 'a/b', action: { type: 'read' } }]);
    expect([status, headers['etag']]).toEqual([200, '"7"']);
    expect(body).toEqual({
      customer: 'a/b',
      version: 7,
      tier: 'pro',
      overrides: [{ rule: 'r', limit: 5 }],
      blocked: false,
      decided: { partition: PARTITION, term: 2, index: 7, position: 0, timeMillis: 90 },
    });
  });

  it('is 404 if there is no record', async () => {
    const decided = { term: 2, index: 7, timeMillis: 90 };
    const record = { version: 0, overrides: [], isBlocked: false };
    listener.customer = { kind: 'customer', outcome: { isDone: true, record, decided } };
    expect(await ask('GET', '/v1/customers/ada')).toMatchObject({
      status: 404,
      body: { error: { type: 'unknown_customer' } },
    });
  });

  it('is changed only if it has the given version', async () => {
    const overrides = [{ rule: 'r', limit: 5, burst: 9 }];
    await ask('PUT', '/v1/customers/ada', { tier: 'pro', overrides, blocked: true }, { 'if-match': '"6"' });
    await ask('PUT', '/v1/customers/ada', {}, { 'if-match': '*' });
    await ask('DELETE', '/v1/customers/ada', undefined, { 'if-match': '"7"' });
    expect(listener.customers.map(({ action }) => action)).toEqual([
      {
        type: 'put',
        tier: 'pro',
        overrides: [{ ruleId: 'r', limit: 5, burst: 9 }],
        isBlocked: true,
        ifVersion: 6,
      },
      { type: 'put', tier: undefined, overrides: [], isBlocked: undefined, ifVersion: undefined },
      { type: 'delete', ifVersion: 7 },
    ]);
  });

  it('is blocked for a duration, together with its other fields', async () => {
    await ask('PUT', '/v1/customers/ada', { tier: 'pro', blocked: true, durationMillis: 1_000 });
    expect(listener.customers).toMatchObject([
      { action: { type: 'put', tier: 'pro', isBlocked: true, durationMillis: 1_000 } },
    ]);
  });

  it('is 412 with the current version if that is another one', async () => {
    const decided = { term: 2, index: 9, timeMillis: 90 };
    const record = { version: 8, overrides: [], isBlocked: true };
    listener.customer = { kind: 'customer', outcome: { isDone: false, record, decided } };
    expect(await ask('PUT', '/v1/customers/ada', { tier: 'pro' }, { 'if-match': '"6"' })).toMatchObject({
      status: 412,
      headers: { etag: '"8"' },
      body: { version: 8, blocked: true, error: { type: 'version_mismatch' } },
    });
  });

  it.each([
    ['tier', { tier: '' }],
    ['tier', { tier: 'x'.repeat(65) }],
    ['tier', { tier: 7 }],
    ['blocked', { blocked: 'yes' }],
    ['durationMillis', { durationMillis: 1 }],
    ['durationMillis', { blocked: false, durationMillis: 1 }],
    ['overrides', { overrides: {} }],
    ['overrides', { overrides: Array.from({ length: 17 }, (_, i) => ({ rule: `r${i}`, limit: 1 })) }],
    ['overrides[0]', { overrides: [7] }],
    ['overrides[0].rule', { overrides: [{ limit: 1 }] }],
    ['overrides[0].limit', { overrides: [{ rule: 'r', limit: -1 }] }],
    ['overrides[0].burst', { overrides: [{ rule: 'r', limit: 1, burst: 0 }] }],
    [
      'overrides[1].rule',
      {
        overrides: [
          { rule: 'r', limit: 1 },
          { rule: 'r', limit: 2 },
        ],
      },
    ],
    ['tiers', { tiers: 'pro' }],
    ['if-match', { tier: 'pro' }, { 'if-match': '7' }],
  ])('is 400 for a wrong %s: %j', async (field, body, headers: Record<string, string> = {}) => {
    expect(await ask('PUT', '/v1/customers/ada', body, headers)).toMatchObject({
      status: 400,
      body: { error: { field } },
    });
    expect(listener.customers).toEqual([]);
  });

  it('is 503 if no node can decide, and reports if the change may have been made', async () => {
    listener.customer = { kind: 'unavailable', reason: 'unknown_outcome', proposed: true };
    expect(await ask('PUT', '/v1/customers/ada', { tier: 'pro' })).toMatchObject({
      status: 503,
      body: { reason: 'unknown_outcome', proposed: true },
    });
  });
});

describe('a key', () => {
  it.each([
    ['PUT', '/v1/users/ada/block', 'rule'],
    ['PUT', '/v1/keys/user=ada/block', 'untilMillis'],
    ['DELETE', '/v1/users/ada/block', 'rule'],
    ['POST', '/v1/users/ada/reset', 'rule'],
    ['DELETE', '/v1/customers/ada', 'tier'],
  ] as const)('is refused by %s %s with a body that has %s', async (method, path, field) => {
    expect(await ask(method, path, { [field]: 1 })).toMatchObject({
      status: 400,
      body: { error: { field } },
    });
    expect(listener.operated).toEqual([]);
  });

  it('can be blocked until an end, which its record shows', async () => {
    const decided = { term: 2, index: 7, position: 0, timeMillis: 90 };
    const record = { version: 7, overrides: [], isBlocked: true, blockedUntilMillis: 60_090 };
    listener.customer = { kind: 'customer', outcome: { isDone: true, record, decided } };
    const asked = { durationMillis: 60_000 };
    for (const path of ['/v1/users/ada/block', '/v1/keys/user=ada/block'])
      expect(await ask('PUT', path, asked)).toMatchObject({
        status: 200,
        body: { blocked: true, blockedUntilMillis: 60_090, decided: { timeMillis: 90 } },
      });
    await ask('PUT', '/v1/users/ada/block', {});
    const block = { type: 'block', isBlocked: true } as const;
    const actions = listener.operated.map((one) => 'action' in one && one.action);
    expect(actions).toEqual([{ ...block, ...asked }, { ...block, ...asked }, block]);
  });

  it.each([0, 1.5, -1, null, '60000', 2_678_400_001])(
    'cannot be blocked for %j ms',
    async (durationMillis) => {
      for (const path of ['/v1/users/ada/block', '/v1/keys/user=ada/block', '/v1/customers/ada'])
        expect(
          await ask('PUT', path, { ...(path.includes('customers') && { blocked: true }), durationMillis }),
        ).toMatchObject({
          status: 400,
          body: { error: { field: 'durationMillis', message: expect.stringContaining('2678400000') } },
        });
      expect([listener.customers, listener.operated]).toEqual([[], []]);
    },
  );

  it('can be blocked, unblocked and reset', async () => {
    expect(await ask('PUT', '/v1/users/ada/block')).toMatchObject({
      status: 200,
      body: { userId: 'ada', version: 7 },
    });
    await ask('DELETE', '/v1/users/ada/block');
    await ask('POST', '/v1/users/a%20b/reset');
    expect(listener.operated).toEqual([
      { ask: 'customer', userId: 'user=ada', action: { type: 'block', isBlocked: true } },
      { ask: 'customer', userId: 'user=ada', action: { type: 'block', isBlocked: false } },
      { ask: 'customer', userId: 'user=a b', action: { type: 'reset' } },
    ]);
  });

  it('can have its usage under a rule set', async () => {
    const body = { rule: 'per-user/day', used: 40 };
    expect(await ask('PUT', '/v1/users/ada/used', body)).toMatchObject({
      status: 200,
      body: { userId: 'ada', key: 'user=ada', version: 7 },
    });
    await ask('PUT', '/v1/keys/ip=10.0.0.1/used', { ...body, used: 0 });
    expect(listener.used).toEqual([
      { key: 'user=ada', ...body },
      { key: 'ip=10.0.0.1', rule: 'per-user/day', used: 0 },
    ]);
    expect(listener.operated).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['no body', undefined, 'body'],
    ['no rule', { used: 1 }, 'rule'],
    ['a rule that is no text', { rule: 7, used: 1 }, 'rule'],
    ['an empty rule', { rule: '', used: 1 }, 'rule'],
    ['a rule that is too long', { rule: 'a'.repeat(129), used: 1 }, 'rule'],
    ['no number', { rule: 'a' }, 'used'],
    ['a fraction', { rule: 'a', used: 1.5 }, 'used'],
    ['a negative number', { rule: 'a', used: -1 }, 'used'],
    ['more than any limit', { rule: 'a', used: 4_294_967_296 }, 'used'],
    ['a text', { rule: 'a', used: '1' }, 'used'],
    ['more fields', { rule: 'a', used: 1, window: 'day' }, 'window'],
  ])('is refused a usage with %s', async (_what, body, field) => {
    for (const path of ['/v1/users/ada/used', '/v1/keys/user=ada/used'])
      expect(await ask('PUT', path, body)).toMatchObject({ status: 400, body: { error: { field } } });
    expect(listener.used).toEqual([]);
  });

  it('must be the key of a user id within its bounds', async () => {
    const long = `/v1/users/${'a'.repeat(257)}/block`;
    expect(await ask('PUT', long)).toMatchObject({ status: 400, body: { error: { field: 'userId' } } });
    expect(listener.operated).toEqual([]);
  });

  it('is 405 for other methods, with the allowed ones', async () => {
    expect(await ask('POST', '/v1/users/ada/block')).toMatchObject({
      status: 405,
      headers: { allow: 'PUT, DELETE' },
    });
    expect(await ask('POST', '/v1/customers/ada')).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD, PUT, DELETE' },
    });
  });
});

describe('a request through a proxy', () => {
  it.each([
    ['PUT', '/v1/customers/ada', { tier: 'pro' }],
    ['DELETE', '/v1/customers/ada', undefined],
    ['PUT', '/v1/users/ada/block', undefined],
    ['DELETE', '/v1/users/ada/block', undefined],
    ['POST', '/v1/users/ada/reset', undefined],
    ['PUT', '/v1/users/ada/used', { rule: 'a', used: 1 }],
    ['PUT', '/v1/keys/user=ada/used', { rule: 'a', used: 1 }],
  ] as const)('changes nothing by %s %s', async (method, url, body) => {
    const { status } = await ask(method, url, body, { 'x-forwarded-for': '10.0.0.1' });
    expect(status).toBe(403);
    expect([listener.customers, listener.operated, listener.used]).toEqual([[], [], []]);
  });
});

describe('a denial for a block', () => {
  it('is 403, with that reason, and names no limit and no wait', async () => {
    const blocked = denialOf({
      limit: 0,
      retryAfterMillis: 0,
      resetMillis: 0,
      windowMillis: 0,
      isBlocked: true,
    });
    const { status, headers, body } = await listener.decide(blocked);
    expect(status).toBe(403);
    expect(Object.keys(headers).filter((name) => /retry|ratelimit/.test(name))).toEqual([]);
    expect(body).toMatchObject({ allowed: false, blocked: true, error: { type: 'blocked' } });
    expect(body).not.toHaveProperty('retryAfterMillis');
  });

  it('returns the wait until its end, and no limit', async () => {
    const nothing = { limit: 0, resetMillis: 0, windowMillis: 0 };
    const { status, headers, body } = await listener.decide(
      denialOf({ ...nothing, retryAfterMillis: 1_001, isBlocked: true }),
    );
    expect([status, headers['retry-after']]).toEqual([403, '2']);
    expect(Object.keys(headers).filter((name) => /ratelimit/.test(name))).toEqual([]);
    expect(body).toMatchObject({ blocked: true, retryAfterMillis: 1_001 });
    expect(body['error']).toMatchObject({ message: 'Blocked by an operator. Please retry after 2 seconds.' });
  });
});
