/** Requests that no rule matches, if the rules deny such requests: the reason, and no retry time, on every route. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import { Listener } from './fixtures.ts';

const MESSAGE =
  'No rule matches this request, and the rules deny such requests. Waiting does not help: check its descriptors.';
const BODY = {
  allowed: false,
  reason: 'unmatched',
  rulesVersion: 7,
  error: { type: 'unmatched', message: MESSAGE },
};

let listener: Listener;
beforeEach(() => {
  listener = new Listener(HTTP_LIMITS, {
    rateLimitHeaders: ['x'],
    userHeader: 'x-user-id',
    trustedProxies: ['127.0.0.1'],
  });
  listener.answer = { kind: 'unmatched', rulesVersion: 7 };
});
afterEach(async () => {
  await listener.app.close();
});

it('POST /v1/allow: 403', async () => {
  const { status, headers, body } = await listener.post({ descriptors: { usr: 'ada' } });
  expect([status, body]).toEqual([403, BODY]);
  for (const name of ['retry-after', 'ratelimit', 'x-ratelimit-limit'])
    expect(headers).not.toHaveProperty(name);
  expect(listener.observed).toMatchObject([{ status: 403 }]);
  expect(listener.reported).toMatchObject([{ answer: { kind: 'unmatched' } }]);
});

it('POST /v1/allow/batch: 403 at its position', async () => {
  const { body } = await listener.post(
    { requests: [{ userId: 'ada' }] },
    'application/json',
    '/v1/allow/batch',
  );
  expect(body).toEqual({ answers: [{ status: 403, ...BODY }] });
});

it('GET /v1/forward-auth: 403, for any status of denials', async () => {
  const headers = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/', 'x-forwarded-for': '203.0.113.9' };
  for (const query of ['', '?deny_status=403']) {
    const { statusCode, headers: reported } = await listener.app.inject({
      url: `/v1/forward-auth${query}`,
      headers,
    });
    expect([statusCode, reported['retry-after']]).toEqual([403, undefined]);
  }
});

it('POST /json: OVER_LIMIT of the descriptor, without a limit', async () => {
  const decided = { kind: 'unmatched', rulesVersion: 7 } as const;
  listener.listedAnswer = {
    kind: 'listed',
    allowed: false,
    lists: [{ kind: 'free' }, { kind: 'unmatched' }],
    decided,
  };
  const descriptors = [1, 2].map((i) => ({ entries: [{ key: 'k', value: String(i) }] }));
  const { status, body } = await listener.post({ domain: 'edge', descriptors }, 'application/json', '/json');
  expect([status, body]).toEqual([
    429,
    { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OK' }, { code: 'OVER_LIMIT' }] },
  ]);
  expect(listener.reported).toMatchObject([{ answer: decided }]);
});

it('GET /v1/keys/{key}: unmatched', async () => {
  const decided = { term: 2, index: 7, timeMillis: 90 };
  listener.keyStatus = {
    kind: 'keyStatus',
    keyStatus: { limits: [], decided, rulesVersion: 7, isUnmatched: true },
  };
  const { statusCode, body } = await listener.app.inject('/v1/keys/usr=ada');
  expect([statusCode, JSON.parse(body)]).toMatchObject([
    200,
    { key: 'usr=ada', unmatched: true, limits: [] },
  ]);
});
