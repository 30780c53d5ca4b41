/** `GET /v1/keys/{key}` and its short form `GET /v1/users/{id}`: the path, the query, and the status in the answer. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limitStatusOf } from '../api/decision-of.ts';
import { Listener, PARTITION } from './fixtures.ts';

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
});

afterEach(() => listener.app.close());

async function get(url: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await listener.app.inject(url);
  return { status: response.statusCode, body: response.json() };
}

describe('GET /v1/users/{id}', () => {
  it('returns every limit, and a wait only if a request would have to wait', async () => {
    const decided = { term: 2, index: 7, timeMillis: 90 };
    const full = limitStatusOf({ ruleId: 'slow', remaining: 0, retryAfterMillis: 500 });
    listener.keyStatus = {
      kind: 'keyStatus',
      keyStatus: { limits: [limitStatusOf(), full], decided, rulesVersion: 7 },
    };
    const limit = {
      rule: 'default',
      limit: 100,
      windowMillis: 60_000,
      remaining: 42,
      resetMillis: 59_001,
    };
    expect(await get('/v1/users/ada')).toEqual({
      status: 200,
      body: {
        userId: 'ada',
        key: 'user=ada',
        limits: [limit, { ...limit, rule: 'slow', remaining: 0, retryAfterMillis: 500 }],
        decided: { partition: PARTITION, ...decided },
        rulesVersion: 7,
      },
    });
    expect(listener.peeks).toEqual([{ key: 'user=ada' }]);
    expect(listener.observed).toEqual([]);
  });

  it.each([
    ['/v1/users/a%20b%2Fc', 'user=a b/c', undefined],
    ['/v1/users/100%25', 'user=100%25', undefined],
    ['/v1/users/%2541', 'user=%2541', undefined],
    ['/v1/users/%E6%97%A5', 'user=日', undefined],
    ['/v1/users/a+b?', 'user=a+b', undefined],
    ['/v1/users/a,b=c', 'user=a%2cb=c', undefined],
    [`/v1/users/${'%41'.repeat(256)}`, `user=${'A'.repeat(256)}`, undefined],
    [`/v1/users/${'%25'.repeat(256)}`, `user=${'%25'.repeat(256)}`, undefined],
    ['/v1/users/ada?rule=a%26b', 'user=ada', 'a&b'],
    ['/v1/users/ada?rule=100/60000ms', 'user=ada', '100/60000ms'],
    ['/v1/users/ada?rule=a+b=c', 'user=ada', 'a b=c'],
  ])('%s asks for the key %j and the rule %j', async (url, key, rule) => {
    expect((await get(url)).status).toBe(200);
    expect(listener.peeks).toEqual([{ key, rule }]);
  });

  it.each([
    [`/v1/users/${'a'.repeat(257)}`, 'userId', 'text of 1 to 256 bytes'],
    [`/v1/users/${'%E6%97%A5'.repeat(86)}`, 'userId', 'text of 1 to 256 bytes'],
    ['/v1/users/%EF%BB%BFada', 'userId', 'text of 1 to 256 bytes'],
    ['/v1/users/%FF', 'url', '%FF'],
    ['/v1/users/%', 'url', '%'],
    [`/v1/users/ada?rule=${'a'.repeat(129)}`, 'rule', 'text of 1 to 128 bytes'],
    ['/v1/users/ada?rule=', 'rule', 'text of 1 to 128 bytes'],
    ['/v1/users/ada?rule', 'rule', 'text of 1 to 128 bytes'],
    ['/v1/users/ada?rule=%FF', 'rule', 'percent-encoded UTF-8'],
    ['/v1/users/ada?rule=a&rule=b', 'query', 'once'],
    ['/v1/users/ada?rules=a', 'query', 'rule='],
  ])('%s is refused for its %s', async (url, field, bound) => {
    const { status, body } = await get(url);
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { type: 'invalid_request', field } });
    expect(JSON.stringify(body)).toContain(bound);
    expect(listener.peeks).toEqual([]);
  });

  it('is refused if the rule is unknown, and if no node can answer', async () => {
    listener.keyStatus = { kind: 'invalid', field: 'rule', message: "there is no rule 'x'" };
    expect(await get('/v1/users/ada?rule=x')).toEqual({
      status: 400,
      body: {
        allowed: false,
        error: { type: 'invalid_request', field: 'rule', message: "there is no rule 'x'" },
      },
    });
    listener.keyStatus = { kind: 'unavailable', reason: 'no_leader', proposed: false };
    expect(await get('/v1/users/ada')).toMatchObject({ status: 503, body: { reason: 'no_leader' } });
  });

  it('accepts no other method, and no shorter or longer path', async () => {
    for (const [method, url, status] of [
      ['POST', '/v1/users/ada', 405],
      ['GET', '/v1/users/', 400],
      ['GET', '/v1/users', 404],
      ['POST', '/v1/keys/user=ada', 405],
      ['GET', '/v1/keys/', 400],
      ['GET', '/v1/keys/user=ada/more', 404],
      ['GET', '/v1/users/ada/more', 404],
    ] as const)
      expect([url, (await listener.app.inject({ method, url })).statusCode]).toEqual([url, status]);
    expect(listener.peeks).toEqual([]);
  });
});

describe('GET /v1/keys/{key}', () => {
  it('returns the status of any key, as for a user', async () => {
    const ofUser = await get('/v1/users/ada?rule=default');
    const ofKey = await get('/v1/keys/user=ada?rule=default');
    const { userId, ...reported } = ofUser.body as { readonly userId: string };
    expect([userId, ofKey]).toEqual(['ada', { status: 200, body: reported }]);
    expect(listener.peeks).toEqual([
      { key: 'user=ada', rule: 'default' },
      { key: 'user=ada', rule: 'default' },
    ]);
  });

  it.each([
    ['/v1/keys/ip%3D10.0.0.1%2Cuser%3Dada', 'ip=10.0.0.1,user=ada'],
    ['/v1/keys/user=a%252cb', 'user=a%2cb'],
    ['/v1/keys/*', '*'],
    [`/v1/keys/${'%41'.repeat(1_024)}`, 'A'.repeat(1_024)],
  ])('%s asks for the unchanged key: %j', async (url, key) => {
    expect(await get(url)).toMatchObject({ status: 200, body: { key } });
    expect(listener.peeks).toEqual([{ key }]);
  });

  it.each([
    [`/v1/keys/${'a'.repeat(1_025)}`, 'key', 'text of 1 to 1024 bytes'],
    [`/v1/keys/${'%E6%97%A5'.repeat(342)}`, 'key', 'text of 1 to 1024 bytes'],
    ['/v1/keys/%EF%BB%BFada', 'key', 'text of 1 to 1024 bytes'],
    ['/v1/keys/%FF', 'url', '%FF'],
    ['/v1/keys/user=ada?rule=', 'rule', 'text of 1 to 128 bytes'],
    ['/v1/keys/user=ada?rules=a', 'query', 'rule='],
  ])('%s is refused for its %s', async (url, field, bound) => {
    const { status, body } = await get(url);
    expect([status, body]).toMatchObject([400, { error: { type: 'invalid_request', field } }]);
    expect(JSON.stringify(body)).toContain(bound);
    expect(listener.peeks).toEqual([]);
  });

  it('reports that an operator blocked it', async () => {
    const keyStatus = { limits: [], decided: { term: 2, index: 7, timeMillis: 90 }, rulesVersion: 7 };
    listener.keyStatus = { kind: 'keyStatus', keyStatus: { ...keyStatus, isBlocked: true } };
    expect(await get('/v1/keys/user=ada')).toMatchObject({ status: 200, body: { blocked: true } });
    const ending = { ...keyStatus, isBlocked: true, blockedUntilMillis: 190 } as const;
    listener.keyStatus = { kind: 'keyStatus', keyStatus: ending };
    expect(await get('/v1/keys/user=ada')).toMatchObject({
      body: { blocked: true, blockedUntilMillis: 190 },
    });
  });
});
