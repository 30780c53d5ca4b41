/** The answers of `POST /v1/allow`: status, headers and body for every kind of answer. */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { Decision } from '../../src/api/answer.ts';
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { formatAnswer } from '../../src/http/answer-format.ts';
import { rateLimitHeaders } from '../../src/api/rate-limit-headers.ts';
import { decisionOf } from '../api/decision-of.ts';
import { denialOf, Listener, PARTITION, WALL_MILLIS } from './fixtures.ts';
import { parseItems } from './structured-fields.ts';

let listener = new Listener();

afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

const receipt = { partition: PARTITION, term: 3, index: 90, timeMillis: 1_700_000_000_000 };

describe('a denial for a restore', () => {
  it('has the reason, and the time until it is over', async () => {
    const denied = denialOf({ restoredMillis: 4_500, retryAfterMillis: 4_500 });
    const { status, headers, body } = await listener.decide(denied);
    expect([status, headers['quorate-restored'], headers['retry-after']]).toEqual([429, '5', '5']);
    expect(body).toMatchObject({ allowed: false, reason: 'restored', restoredMillis: 4_500 });
    expect((body['error'] as { message: string }).message).toMatch(/^The cluster was restored/);
    const { headers: others, body: other } = await listener.decide(denialOf());
    expect([others['quorate-restored'], other['reason']]).toEqual([undefined, undefined]);
  });
});

describe('a grant', () => {
  it('is 200 with the receipt', async () => {
    const { status, headers, body } = await listener.decide(decisionOf());
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers).not.toHaveProperty('retry-after');
    expect(body).toEqual({
      allowed: true,
      limit: 100,
      windowMillis: 60_000,
      remaining: 42,
      resetMillis: 59_001,
      rule: 'default',
      decided: receipt,
      rulesVersion: 7,
    });
  });

  it('names the key that was counted, if it is known', async () => {
    listener.answer = { kind: 'decision', decision: decisionOf(), key: 'user=ada' };
    expect((await listener.post({ userId: 'ada' })).body).toMatchObject({ rule: 'default', key: 'user=ada' });
    listener.answer = { kind: 'decision', decision: denialOf(), key: 'ip=10.0.0.1,user=ada' };
    expect((await listener.post({ userId: 'ada' })).body).toMatchObject({ key: 'ip=10.0.0.1,user=ada' });
  });

  it('has the time for which it must queue, if it must', async () => {
    const { status, body } = await listener.decide(decisionOf({ waitMillis: 1_500 }));
    expect([status, body['allowed'], body['waitMillis']]).toEqual([200, true, 1_500]);
  });

  it('has the rate limit headers', async () => {
    const { headers } = await listener.decide(decisionOf());
    expect(headers).toMatchObject({
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '42',
      'x-ratelimit-reset': '1700000060',
      'ratelimit-policy': '"default";q=100;w=60',
      ratelimit: '"default";r=42;t=60',
    });
  });

  it('of the last unit has the time until the next one is free', async () => {
    const { headers } = await listener.decide(decisionOf({ remaining: 0, retryAfterMillis: 1_001 }));
    expect(headers['ratelimit']).toBe('"default";r=0;t=2');
  });

  it('is observed with its status and its start', async () => {
    await listener.decide(decisionOf());
    expect(listener.observed).toEqual([{ status: 200, startedMillis: 777 }]);
  });
});

describe('a denial', () => {
  it('is 429 with the time to wait', async () => {
    const { status, headers, body } = await listener.decide(denialOf());
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'retry-after': '13',
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '0',
      'ratelimit-policy': '"default";q=100;w=60',
      ratelimit: '"default";r=0;t=13',
    });
    expect(body).toEqual({
      allowed: false,
      limit: 100,
      windowMillis: 60_000,
      remaining: 0,
      resetMillis: 59_001,
      retryAfterMillis: 12_345,
      rule: 'default',
      decided: receipt,
      rulesVersion: 7,
      error: {
        type: 'rate_limit_error',
        message: 'Rate limit exceeded. Please retry after 13 seconds.',
        retry_after: 13,
        limit: 100,
        window: '60s',
      },
    });
  });

  it('shows a window in milliseconds if it is not a whole number of seconds', async () => {
    const { headers, body } = await listener.decide(denialOf({ windowMillis: 1_500 }));
    expect(body.error).toMatchObject({ window: '1500ms' });
    expect(headers['ratelimit-policy']).toBe('"default";q=100;w=2');
  });
});

describe('an unavailable decision', () => {
  it.each(UNAVAILABLE_REASONS)('is 503, denied, with the reason: %s', async (reason) => {
    listener.answer = { kind: 'unavailable', reason, proposed: true };
    const { status, headers, body } = await listener.post({ userId: 'ada' });
    expect(status).toBe(503);
    expect(headers).toMatchObject({
      'content-type': 'application/problem+json; charset=utf-8',
      'retry-after': '1',
    });
    expect(body).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Temporary Reduced Capacity',
      status: 503,
      detail: expect.stringMatching(/./),
      allowed: false,
      reason,
      proposed: true,
    });
    expect(listener.observed.map((each) => each.status)).toEqual([503]);
  });
});

describe('a request that no rule limits', () => {
  it('is 200, with that reason and without a receipt', async () => {
    listener.answer = { kind: 'unlimited', rulesVersion: 7 };
    const { status, headers, body } = await listener.post({ userId: 'ada' });
    expect([status, body]).toEqual([200, { allowed: true, unlimited: true, rulesVersion: 7 }]);
    expect(headers).not.toHaveProperty('x-ratelimit-remaining');
  });
});

describe('a decision by a fail mode', () => {
  const described = { descriptors: { user: 'ada' } };

  it('is 200 for a grant, with that reason and the rules, without a receipt', async () => {
    listener.answer = {
      kind: 'degraded',
      allowed: true,
      ruleIds: ['a', 'b'],
      rulesVersion: 7,
      retryAfterMillis: 0,
    };
    const { status, headers, body } = await listener.post(described);
    expect(status).toBe(200);
    expect(headers).not.toHaveProperty('retry-after');
    expect(headers).not.toHaveProperty('x-ratelimit-remaining');
    expect(body).toEqual({ allowed: true, degraded: true, rules: ['a', 'b'], rulesVersion: 7 });
    expect(listener.reported).toMatchObject([{ answer: listener.answer }]);
  });

  it('is 429 for a denial, with a retry time that is never too early', async () => {
    listener.answer = {
      kind: 'degraded',
      allowed: false,
      ruleIds: ['a'],
      rulesVersion: 7,
      retryAfterMillis: 12_001,
    };
    const { status, headers, body } = await listener.post(described);
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'retry-after': '13',
    });
    expect(body).toEqual({
      allowed: false,
      degraded: true,
      rules: ['a'],
      rulesVersion: 7,
      retryAfterMillis: 12_001,
      error: {
        type: 'rate_limit_error',
        message: 'No node can decide, and what this node may grant on its own is used up. Retry after 13 s.',
        retry_after: 13,
      },
    });
    expect(listener.observed.map((each) => each.status)).toEqual([429]);
  });
});

describe('a request that the cluster refuses', () => {
  it.each([
    ['cost', 'cost is out of bounds'],
    [
      'rule',
      "rule 'user' applies to all requests that match it; only a rule with named: true can be asked for by its id",
    ],
    ['descriptors', "descriptors must have ip: rule 'by-ip' counts by it"],
  ])('is 400 and names the field: %s', async (field, message) => {
    listener.answer = { kind: 'invalid', field, message };
    const { status, body } = await listener.post({ userId: 'ada', rule: 'user' });
    expect(status).toBe(400);
    expect(body).toEqual({ allowed: false, error: { type: 'invalid_request', field, message } });
  });
});

const natural = fc.oneof(fc.nat(100), fc.nat(1_000_000));
const millis = fc.oneof(fc.nat(3_000), fc.nat(2_678_400_000));
const decision: fc.Arbitrary<Decision> = fc.record({
  allowed: fc.boolean(),
  ruleId: fc.string({ minLength: 1, maxLength: 128, unit: 'binary' }),
  limit: natural.filter((limit) => limit > 0),
  windowMillis: fc.integer({ min: 1, max: 2_678_400_000 }),
  remaining: natural,
  retryAfterMillis: millis,
  resetMillis: millis,
  decided: fc.record({ term: natural, index: natural, timeMillis: natural }),
  rulesVersion: natural,
});

describe('a rule in shadow', () => {
  it('is named if it would have denied a request that is granted, with its key, its limit and the wait', async () => {
    const one = { ruleId: 'shadowed/hour', key: 'user=ada', limit: 5, retryAfterMillis: 700 };
    const wouldDeny = [one, { ...one, ruleId: 'never/hour', limit: 0 }];
    const shown = [
      { rule: 'shadowed/hour', key: 'user=ada', limit: 5, retryAfterMillis: 700 },
      { rule: 'never/hour', key: 'user=ada', limit: 0 },
    ];
    for (const answer of [
      { kind: 'decision', decision: decisionOf() },
      { kind: 'unlimited', rulesVersion: 7 },
    ] as const) {
      listener.answer = { ...answer, wouldDeny };
      const { status, body } = await listener.post({ userId: 'ada' });
      expect([status, body['allowed'], body['wouldDeny']]).toEqual([200, true, shown]);
    }
  });
});

describe('a receipt', () => {
  it('contains the position in the entry, if there is one', async () => {
    const decided = { term: 3, index: 90, position: 7, timeMillis: 1_700_000_000_000 };
    const granted = await listener.decide(decisionOf({ decided }));
    expect(granted.body['decided']).toEqual({ partition: PARTITION, ...decided });
    const denied = await listener.decide(denialOf({ decided }));
    expect(denied.body['decided']).toEqual({ partition: PARTITION, ...decided });
    const read = await listener.decide(denialOf());
    expect(read.body['decided']).not.toHaveProperty('position');
  });
});

function headersOf(each: Decision): Readonly<Record<string, string>> {
  const limitHeaders = rateLimitHeaders(each, ['x', 'draft'], WALL_MILLIS);
  return formatAnswer({ kind: 'decision', decision: each }, PARTITION, limitHeaders).headers;
}

describe('headers', () => {
  it('are well-formed for every decision', () => {
    fc.assert(
      fc.property(decision, (each) => {
        const headers = headersOf(each);
        for (const value of Object.values(headers)) expect(value).toMatch(/^[\x20-\x7e]+$/);
        const [policy, ...otherPolicies] = parseItems(headers['ratelimit-policy'] ?? '');
        const [state, ...otherStates] = parseItems(headers['ratelimit'] ?? '');
        expect([otherPolicies, otherStates]).toEqual([[], []]);
        expect(policy?.name).toBe(state?.name);
        expect(policy?.parameters).toEqual({ q: each.limit, w: Math.ceil(each.windowMillis / 1000) });
        expect(Object.keys(state?.parameters ?? {})).toEqual(['r', 't']);
        expect(state?.parameters['r']).toBe(each.remaining);
      }),
      { seed: 13, numRuns: 500 },
    );
  });

  it('have a retry time that is never too early, and less than a second late', () => {
    fc.assert(
      fc.property(decision, (each) => {
        const headers = headersOf(each);
        const reset = Number(headers['x-ratelimit-reset']) * 1000 - WALL_MILLIS - each.resetMillis;
        expect(reset).toBeGreaterThanOrEqual(0);
        expect(reset).toBeLessThan(1000);
        const wait = headers['retry-after'];
        expect(wait === undefined).toBe(each.allowed);
        const late = wait === undefined ? 0 : Number(wait) * 1000 - each.retryAfterMillis;
        expect(wait ?? '0').toMatch(/^\d+$/);
        expect(late).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThan(1000);
      }),
      { seed: 14, numRuns: 500 },
    );
  });

  it('have no wait under a limit of 0, in any header or field, because none would help', async () => {
    const never = denialOf({ limit: 0, remaining: 0, resetMillis: 0, retryAfterMillis: 60_000 });
    const other = { ...denialOf(), ruleId: 'other' };
    const { status, headers, body } = await listener.decide({ ...never, limits: [never, other] });
    expect(status).toBe(429);
    expect(headers).not.toHaveProperty('retry-after');
    expect(headers).not.toHaveProperty('x-ratelimit-reset');
    expect(parseItems(String(headers['ratelimit']))[0]?.parameters).toEqual({ r: 0 });
    expect(rateLimitHeaders(never, ['draft6'], WALL_MILLIS)).not.toHaveProperty('ratelimit-reset');
    expect(body).not.toHaveProperty('retryAfterMillis');
    expect(body['error']).toMatchObject({
      message: 'Rate limit exceeded. The limit is 0. Waiting does not help.',
    });
    expect(body['error']).not.toHaveProperty('retry_after');
    const [first, second] = body['limits'] as readonly object[];
    expect(first).not.toHaveProperty('retryAfterMillis');
    expect(second).toHaveProperty('retryAfterMillis');
  });

  it.each([
    ['quotes and backslashes', 'a"b\\c";q=9', '"a\\"b\\\\c\\";q=9"'],
    ['line breaks', 'a\r\nset-cookie: x', '"a??set-cookie: x"'],
    ['other characters', 'tägliche Zahl 日', '"t?gliche Zahl ?"'],
    ['a list', 'a","b', '"a\\",\\"b"'],
  ])('are well-formed for a rule id with %s', async (_what, ruleId, shown) => {
    const { status, headers, body } = await listener.decide(denialOf({ ruleId }));
    expect(status).toBe(429);
    expect(headers['ratelimit']).toBe(`${shown};r=0;t=13`);
    expect(parseItems(String(headers['ratelimit-policy']))).toHaveLength(1);
    expect(headers).not.toHaveProperty('set-cookie');
    expect(body['rule']).toBe(ruleId);
  });
});
