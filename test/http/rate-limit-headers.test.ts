/**
 * Which rate limit headers an answer carries, in each form and none: names and values as in 002-14 and the drafts,
 * written by hand. The listener's clock is fixed at 1,700,000,000.123 s.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { Decision } from '../../src/api/answer.ts';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import type { RateLimitHeaders } from '../../src/api/rate-limit-headers.ts';
import { HTTP_SETTINGS_DEFAULTS } from '../../src/config/http-settings.ts';
import { decisionOf } from '../api/decision-of.ts';
import { denialOf, Listener, type HttpResult } from './fixtures.ts';

/** 42 of 100 per minute are left, and all are free in 59,001 ms. */
const GRANT = decisionOf();
/** None is left, and one is free in 12,345 ms. */
const DENIAL = denialOf();

const X = {
  'x-ratelimit-limit': '100',
  'x-ratelimit-reset': '1700000060',
  'x-ratelimit-policy': '100;w=60',
  'x-ratelimit-rule': 'default',
};
const X_GRANT = { ...X, 'x-ratelimit-remaining': '42' };
const X_DENIAL = { ...X, 'x-ratelimit-remaining': '0' };
const DRAFT6_GRANT = {
  'ratelimit-limit': '100',
  'ratelimit-remaining': '42',
  'ratelimit-reset': '60',
  'ratelimit-policy': '100;w=60',
};
const DRAFT6_DENIAL = { ...DRAFT6_GRANT, 'ratelimit-remaining': '0', 'ratelimit-reset': '13' };
const DRAFT_GRANT = { 'ratelimit-policy': '"default";q=100;w=60', ratelimit: '"default";r=42;t=60' };
const DRAFT_DENIAL = { ...DRAFT_GRANT, ratelimit: '"default";r=0;t=13' };

const listeners: Listener[] = [];

afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.app.close();
});

async function decided(forms: readonly RateLimitHeaders[], decision: Decision): Promise<HttpResult> {
  const listener = new Listener(HTTP_LIMITS, { rateLimitHeaders: forms });
  listeners.push(listener);
  return listener.decide(decision);
}

/** The fields that any form could have added. */
function limitHeaders({ headers }: HttpResult): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.includes('ratelimit')));
}

describe('rate limit headers', () => {
  it.each<[readonly RateLimitHeaders[], object, object]>([
    [[], {}, {}],
    [['x'], X_GRANT, X_DENIAL],
    [['draft6'], DRAFT6_GRANT, DRAFT6_DENIAL],
    [['draft'], DRAFT_GRANT, DRAFT_DENIAL],
    [['x', 'draft6'], { ...X_GRANT, ...DRAFT6_GRANT }, { ...X_DENIAL, ...DRAFT6_DENIAL }],
    // A policy field cannot have two forms at once: it has the newer one.
    [['draft', 'draft6'], { ...DRAFT6_GRANT, ...DRAFT_GRANT }, { ...DRAFT6_DENIAL, ...DRAFT_DENIAL }],
    [
      ['x', 'draft6', 'draft'],
      { ...X_GRANT, ...DRAFT6_GRANT, ...DRAFT_GRANT },
      { ...X_DENIAL, ...DRAFT6_DENIAL, ...DRAFT_DENIAL },
    ],
  ])('of %j are on grants and on denials', async (forms, ofGrant, ofDenial) => {
    expect(limitHeaders(await decided(forms, GRANT))).toEqual(ofGrant);
    expect(limitHeaders(await decided(forms, DENIAL))).toEqual(ofDenial);
  });

  it('are by default the x- headers and those of the current draft', () => {
    expect(HTTP_SETTINGS_DEFAULTS).toEqual({ rateLimitHeaders: ['x', 'draft'] });
  });

  it('are only on answers that are decisions', async () => {
    const listener = new Listener(HTTP_LIMITS, { rateLimitHeaders: ['x', 'draft6', 'draft'] });
    listeners.push(listener);
    for (const answer of [
      { kind: 'unavailable', reason: 'no_leader', proposed: false },
      { kind: 'invalid', field: 'cost', message: 'cost is out of bounds' },
      { kind: 'conflict', field: 'cost', message: 'used before' },
    ] as const) {
      listener.answer = answer;
      expect(limitHeaders(await listener.post({ userId: 'ada' }))).toEqual({});
    }
    expect(limitHeaders(await listener.post({ userId: '' }))).toEqual({});
  });

  it.each([
    ['none are left', { remaining: 0, retryAfterMillis: 1_001 }, '2'],
    ['some are left', { remaining: 1, retryAfterMillis: 1_001 }, '60'],
  ])(
    'of a grant contain the time until which only the rest can be used: %s',
    async (_what, changes, seconds) => {
      const { headers } = await decided(['draft6', 'draft'], decisionOf(changes));
      expect(headers).toMatchObject({
        'ratelimit-reset': seconds,
        ratelimit: `"default";r=${changes.remaining};t=${seconds}`,
      });
    },
  );

  it.each([
    [0, 3_000, '3'],
    [0, 2_001, '3'],
    [0, 1, '1'],
    [3, 2_001, '3'],
  ])(
    'of a denial end no later than retry-after, which is never early: %i left, %i ms',
    async (remaining, retryAfterMillis, seconds) => {
      const { headers } = await decided(['draft6', 'draft'], denialOf({ remaining, retryAfterMillis }));
      expect(headers).toMatchObject({
        'retry-after': seconds,
        'ratelimit-reset': seconds,
        ratelimit: `"default";r=${remaining};t=${seconds}`,
      });
    },
  );

  it('report a window of less than a second as one second', async () => {
    const { headers } = await decided(['x', 'draft6'], denialOf({ windowMillis: 1 }));
    expect(headers).toMatchObject({ 'x-ratelimit-policy': '100;w=1', 'ratelimit-policy': '100;w=1' });
  });

  it.each([
    ['100/60000ms', '100/60000ms'],
    ['a b', 'a%20b'],
    ['50%', '50%25'],
    ['日\r\nset-cookie: x', '%E6%97%A5%0D%0Aset-cookie:%20x'],
  ])('name the rule %j as percent-encoded text', async (ruleId, shown) => {
    const { headers } = await decided(['x'], denialOf({ ruleId }));
    expect(headers['x-ratelimit-rule']).toBe(shown);
    expect(headers).not.toHaveProperty('set-cookie');
  });
});

describe('any form of the headers', () => {
  it.each<[readonly RateLimitHeaders[]]>([[[]], [['x']], [['draft6']], [['draft']]])(
    'with %j, a denial has retry-after and a body that names the rule',
    async (forms) => {
      const { status, headers, body } = await decided(forms, denialOf({ ruleId: 'burst' }));
      expect([status, headers['retry-after']]).toEqual([429, '13']);
      expect(body).toMatchObject({
        allowed: false,
        rule: 'burst',
        error: {
          type: 'rate_limit_error',
          message: 'Rate limit exceeded. Please retry after 13 seconds.',
          retry_after: 13,
          limit: 100,
          window: '60s',
        },
      });
    },
  );
});
