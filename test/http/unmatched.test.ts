/** Requests that no rule matches, where the rules deny such requests: the reason, and no retry time, on every route. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HTTP_LIMITS } from '../../src/http/door-init.ts';
import { Door } from './fixtures.ts';

const MESSAGE =
  'No rule matches this request, and the rules deny such requests. Waiting does not help: check its descriptors.';
const BODY = {
  allowed: false,
  reason: 'unmatched',
  rulesVersion: 7,
  error: { type: 'unmatched', message: MESSAGE },
};

let door: Door;
beforeEach(() => {
  door = new Door(HTTP_LIMITS, {
    rateLimitHeaders: ['x'],
    userHeader: 'x-user-id',
    trustedProxies: ['127.0.0.1'],
  });
  door.answer = { kind: 'unmatched', rulesVersion: 7 };
});
afterEach(async () => {
  await door.app.close();
});

it('POST /v1/allow: 403', async () => {
  const { status, headers, body } = await door.post({ descriptors: { usr: 'ada' } });
  expect([status, body]).toEqual([403, BODY]);
  for (const name of ['retry-after', 'ratelimit', 'x-ratelimit-limit'])
    expect(headers).not.toHaveProperty(name);
  expect(door.observed).toMatchObject([{ status: 403 }]);
  expect(door.told).toMatchObject([{ answer: { kind: 'unmatched' } }]);
});

it('POST /v1/allow/batch: 403 in its place', async () => {
  const { body } = await door.post({ requests: [{ userId: 'ada' }] }, 'application/json', '/v1/allow/batch');
  expect(body).toEqual({ answers: [{ status: 403, ...BODY }] });
});

it('GET /v1/forward-auth: 403, whatever denials are told as', async () => {
  const headers = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/', 'x-forwarded-for': '203.0.113.9' };
  for (const query of ['', '?deny_status=403']) {
    const { statusCode, headers: told } = await door.app.inject({ url: `/v1/forward-auth${query}`, headers });
    expect([statusCode, told['retry-after']]).toEqual([403, undefined]);
  }
});

it('POST /json: OVER_LIMIT of the descriptor, without a limit', async () => {
  const decided = { kind: 'unmatched', rulesVersion: 7 } as const;
  door.listedAnswer = {
    kind: 'listed',
    allowed: false,
    lists: [{ kind: 'free' }, { kind: 'unmatched' }],
    decided,
  };
  const descriptors = [1, 2].map((i) => ({ entries: [{ key: 'k', value: String(i) }] }));
  const { status, body } = await door.post({ domain: 'edge', descriptors }, 'application/json', '/json');
  expect([status, body]).toEqual([
    429,
    { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OK' }, { code: 'OVER_LIMIT' }] },
  ]);
  expect(door.told).toMatchObject([{ answer: decided }]);
});

it('GET /v1/keys/{key}: unmatched', async () => {
  const decided = { term: 2, index: 7, timeMillis: 90 };
  door.standing = {
    kind: 'standing',
    standing: { limits: [], decided, rulesVersion: 7, isUnmatched: true },
  };
  const { statusCode, body } = await door.app.inject('/v1/keys/usr=ada');
  expect([statusCode, JSON.parse(body)]).toMatchObject([
    200,
    { key: 'usr=ada', unmatched: true, limits: [] },
  ]);
});
