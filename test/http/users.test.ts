/** `GET /v1/users/{id}`: the path and the query are read in one way only, and the answer says how the user stands. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { standingOf } from '../api/decision-of.ts';
import { Door, PARTITION } from './fixtures.ts';

let door: Door;

beforeEach(() => {
  door = new Door();
});

afterEach(() => door.app.close());

async function get(url: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await door.app.inject(url);
  return { status: response.statusCode, body: response.json() };
}

describe('GET /v1/users/{id}', () => {
  it('tells every limit, and a wait only to those who have to', async () => {
    const decided = { term: 2, index: 7, timeMillis: 90 };
    const full = standingOf({ ruleId: 'slow', remaining: 0, retryAfterMillis: 500 });
    door.standing = {
      kind: 'standing',
      standing: { limits: [standingOf(), full], decided, rulesVersion: 7 },
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
        limits: [limit, { ...limit, rule: 'slow', remaining: 0, retryAfterMillis: 500 }],
        decided: { partition: PARTITION, ...decided },
        rulesVersion: 7,
      },
    });
    expect(door.looks).toEqual([{ ask: 'look', userId: 'ada', ruleId: undefined }]);
    expect(door.observed).toEqual([]);
  });

  it.each([
    ['/v1/users/a%20b%2Fc', 'a b/c', undefined],
    ['/v1/users/100%25', '100%', undefined],
    ['/v1/users/%2541', '%41', undefined],
    ['/v1/users/%E6%97%A5', '日', undefined],
    ['/v1/users/a+b?', 'a+b', undefined],
    [`/v1/users/${'%41'.repeat(256)}`, 'A'.repeat(256), undefined],
    ['/v1/users/ada?rule=a%26b', 'ada', 'a&b'],
    ['/v1/users/ada?rule=100/60000ms', 'ada', '100/60000ms'],
    ['/v1/users/ada?rule=a+b=c', 'ada', 'a b=c'],
  ])('%s asks for %j and %j', async (url, userId, ruleId) => {
    expect((await get(url)).status).toBe(200);
    expect(door.looks).toEqual([{ ask: 'look', userId, ruleId }]);
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
    expect(door.looks).toEqual([]);
  });

  it('is refused where there is no such rule, and where nobody can answer', async () => {
    door.standing = { kind: 'invalid', field: 'rule', message: "there is no rule 'x'" };
    expect(await get('/v1/users/ada?rule=x')).toEqual({
      status: 400,
      body: {
        allowed: false,
        error: { type: 'invalid_request', field: 'rule', message: "there is no rule 'x'" },
      },
    });
    door.standing = { kind: 'unavailable', reason: 'no_leader', proposed: false };
    expect(await get('/v1/users/ada')).toMatchObject({ status: 503, body: { reason: 'no_leader' } });
  });

  it('takes no other method, and no shorter or longer path', async () => {
    for (const [method, url, status] of [
      ['POST', '/v1/users/ada', 405],
      ['GET', '/v1/users/', 400],
      ['GET', '/v1/users', 404],
      ['GET', '/v1/users/ada/more', 404],
    ] as const)
      expect([url, (await door.app.inject({ method, url })).statusCode]).toEqual([url, status]);
    expect(door.looks).toEqual([]);
  });
});
