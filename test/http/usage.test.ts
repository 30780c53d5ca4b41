/** `GET /v1/usage`: its query, the callers that may see names of users, and the counts of answers by HTTP and RESP. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { questionOf, type UserQuestion } from '../../src/api/question.ts';
import type { UsageReport } from '../../src/api/usage.ts';
import { PlayedListener } from '../resp/fixtures.ts';
import { Listener } from './fixtures.ts';

const REPORT: UsageReport = {
  minutes: 1,
  nodes: [1, 2],
  silent: [3],
  rules: [
    { rule: 'default', allowed: 3, denied: 2, unavailable: 1, degraded: 4, wouldAllow: 0, wouldDeny: 0 },
  ],
  history: { fromMillis: 60_000, allowed: [3], denied: [2], unavailable: [1], degraded: [4] },
};

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
  listener.usage = { ok: true, report: REPORT };
});

afterEach(() => listener.app.close());

describe('GET /v1/usage', () => {
  it.each([
    ['', { minutes: 60, ruleId: undefined, top: 0 }],
    ['?', { minutes: 60, ruleId: undefined, top: 0 }],
    ['?minutes=1440&rule=a%26b&top=100', { minutes: 1_440, ruleId: 'a&b', top: 100 }],
    ['?top=1&rule=5/1000ms&minutes=1', { minutes: 1, ruleId: '5/1000ms', top: 1 }],
  ])('%s asks for %j', async (query, asked) => {
    const response = await listener.app.inject(`/v1/usage${query}`);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(REPORT);
    expect(listener.usageAsked).toEqual([asked]);
  });

  it.each([
    ['?minutes=0', 'minutes', 'an integer from 1 to 1440'],
    ['?minutes=1441', 'minutes', 'an integer from 1 to 1440'],
    ['?minutes=1.5', 'minutes', 'an integer from 1 to 1440'],
    ['?minutes=', 'minutes', 'an integer from 1 to 1440'],
    ['?minutes=0x10', 'minutes', 'an integer from 1 to 1440'],
    ['?minutes=%2B5', 'minutes', 'an integer from 1 to 1440'],
    ['?top=0', 'top', 'an integer from 1 to 100'],
    ['?top=101', 'top', 'an integer from 1 to 100'],
    ['?top=-1', 'top', 'an integer from 1 to 100'],
    ['?rule=', 'rule', 'text of 1 to 128 bytes'],
    [`?rule=${'a'.repeat(129)}`, 'rule', 'text of 1 to 128 bytes'],
    ['?rule=%FF', 'rule', 'percent-encoded UTF-8'],
    ['?minutes=1&minutes=2', 'query', 'each once at most'],
    ['?user=ada', 'query', 'minutes, rule, top'],
    ['?constructor=1', 'query', 'minutes, rule, top'],
  ])('%s is refused for its %s', async (query, field, bound) => {
    const response = await listener.app.inject(`/v1/usage${query}`);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ error: { type: 'invalid_request', field } });
    expect(response.json<{ error: { message: string } }>().error.message).toContain(bound);
    expect(listener.usageAsked).toEqual([]);
  });

  it('names users to programs on the machine of the node only', async () => {
    const ask = (url: string, remoteAddress: string): Promise<number> =>
      listener.app.inject({ url, remoteAddress }).then(({ statusCode }) => statusCode);
    expect(await ask('/v1/usage?top=5', '10.1.2.3')).toBe(403);
    expect(listener.usageAsked).toEqual([]);
    expect(await ask('/v1/usage', '10.1.2.3')).toBe(200);
    const proxied = { url: '/v1/usage?top=5', headers: { 'x-forwarded-for': '10.1.2.3' } };
    expect((await listener.app.inject(proxied)).statusCode).toBe(403);
  });

  it.each(['starting', 'tooMany'] as const)(
    'is 503 with a retry time when the node has no figures: %s',
    async (reason) => {
      listener.usage = { ok: false, reason };
      const response = await listener.app.inject('/v1/usage');
      expect(response.statusCode).toBe(503);
      expect(response.headers['retry-after']).toBe('1');
      expect(response.json()).toMatchObject({ reason });
    },
  );
});

describe('every answer of a listener is reported to its node', () => {
  const requests: readonly UserQuestion[] = [{ userId: 'ada' }, { userId: 'bob', rule: 'slow' }];

  it('by HTTP, in a batch or alone', async () => {
    await listener.post({ requests }, 'application/json', '/v1/allow/batch');
    await listener.post({ userId: 'eve' });
    expect(listener.reported).toMatchObject(
      [...requests, { userId: 'eve' }].map((each) => ({ request: questionOf(each) })),
    );
    expect(listener.reported[1]).toMatchObject({
      request: { rule: 'slow' },
      answer: { kind: 'decision' },
      startedMillis: 777,
    });
  });

  it('by the Redis protocol', async () => {
    const resp = await PlayedListener.listening();
    try {
      const client = resp.client();
      await client.ask('ALLOW', 'ada');
      await client.ask('ALLOW', 'bob', 'RULE', 'slow');
      expect(resp.reported).toMatchObject([
        { request: questionOf({ userId: 'ada' }) },
        { request: questionOf({ userId: 'bob', rule: 'slow' }) },
      ]);
    } finally {
      await resp.stop();
    }
  });
});
