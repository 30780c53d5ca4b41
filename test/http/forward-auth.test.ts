/**
 * `GET /v1/forward-auth`: the client and the rules of a request, and the answers. A request with something missing is
 * refused.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import type { HttpSettings } from '../../src/config/http-settings.ts';
import { keyOfAddress } from '../../src/http/client-address.ts';
import { denialOf, Listener, WALL_MILLIS } from './fixtures.ts';

const URL = '/v1/forward-auth';
const SETTINGS: HttpSettings = {
  rateLimitHeaders: ['x', 'draft'],
  userHeader: 'x-user-id',
  trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'],
};

let listener: Listener;

function opened(settings: HttpSettings = SETTINGS): Listener {
  listener = new Listener(HTTP_LIMITS, settings);
  return listener;
}

afterEach(async () => listener.app.close());

/** The headers that every gateway sends. */
const OF_REQUEST = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/api/a?b=c' };
const FORWARDED = { 'x-forwarded-for': '203.0.113.9', ...OF_REQUEST };

type Asked = Awaited<ReturnType<Listener['app']['inject']>>;

async function ask(headers: Record<string, string>, query = '', remoteAddress = '127.0.0.1'): Promise<Asked> {
  return listener.app.inject({ method: 'GET', url: `${URL}${query}`, headers, remoteAddress });
}

describe('the user of a request', () => {
  it.each<[string, Record<string, string>, string, string?]>([
    ['the user in the header', { 'x-user-id': 'ada' }, 'ada'],
    [
      'the user, not the address',
      { 'x-user-id': 'ada', 'x-forwarded-for': '203.0.113.9' },
      'ada',
      '203.0.113.9',
    ],
    [
      'the address, if there is no user',
      { 'x-forwarded-for': '203.0.113.9' },
      'ip=203.0.113.9',
      '203.0.113.9',
    ],
    [
      'the last address that is no gateway of this cluster',
      { 'x-forwarded-for': '1.1.1.1, 203.0.113.9, 10.0.0.7' },
      'ip=203.0.113.9',
      '203.0.113.9',
    ],
    [
      'not the malformed address that a client sent',
      { 'x-forwarded-for': 'unknown, 203.0.113.9' },
      'ip=203.0.113.9',
      '203.0.113.9',
    ],
    [
      'the first address, if all are gateways of this cluster',
      { 'x-forwarded-for': '10.0.0.8,fd00::1' },
      'ip=10.0.0.8',
      '10.0.0.8',
    ],
    ['an IPv4 address in IPv6', { 'x-forwarded-for': '::ffff:203.0.113.9' }, 'ip=203.0.113.9', '203.0.113.9'],
    ['an address with a port', { 'x-forwarded-for': '203.0.113.9:443' }, 'ip=203.0.113.9', '203.0.113.9'],
    [
      'an address of IPv6 with a port',
      { 'x-forwarded-for': '[2001:db8:0:1::5]:443' },
      'ip=2001:db8:0:1::/64',
      '2001:db8:0:1::5',
    ],
    ['64 bits of IPv6', { 'x-forwarded-for': '2001:DB8:0:1::5' }, 'ip=2001:db8:0:1::/64', '2001:db8:0:1::5'],
  ])('is %s', async (_what, headers, user, ip) => {
    opened();
    expect((await ask({ ...OF_REQUEST, ...headers })).statusCode).toBe(200);
    const [asked] = listener.asked;
    expect([asked?.descriptors.get('user'), asked?.descriptors.get('ip')]).toEqual([user, ip]);
  });

  it.each<[string, Record<string, string>, string, string]>([
    ['nobody says', {}, '127.0.0.1', 'userId'],
    ['the address is empty', { 'x-forwarded-for': '' }, '127.0.0.1', 'x-forwarded-for'],
    ['the sender is no gateway of this cluster', { 'x-forwarded-for': '203.0.113.9' }, '192.0.2.1', 'userId'],
    [
      'a gateway sends a malformed address',
      { 'x-forwarded-for': '203.0.113.9:4433443' },
      '127.0.0.1',
      'x-forwarded-for',
    ],
    ['the user is empty', { 'x-user-id': '', 'x-forwarded-for': '203.0.113.9' }, '127.0.0.1', 'x-user-id'],
  ])('is missing, and the request refused, if %s', async (_what, headers, remoteAddress, field) => {
    opened();
    const response = await ask({ ...OF_REQUEST, ...headers }, '', remoteAddress);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ allowed: false, error: { field } });
    expect(listener.asked).toEqual([]);
    expect(listener.observed.map(({ status }) => status)).toEqual([400]);
  });

  it('is never the forwarded address without the setting', async () => {
    opened({ rateLimitHeaders: [] });
    expect((await ask({ ...FORWARDED, 'x-user-id': 'ada' })).statusCode).toBe(400);
  });

  it.each([
    ['2001:db8:1:2:3:4:5:6', 'ip=2001:db8:1:2::/64'],
    ['::1', 'ip=0:0:0:0::/64'],
    ['2001:db8::', 'ip=2001:db8:0:0::/64'],
  ])('%s counts as %s', (address, key) => {
    opened();
    expect(keyOfAddress(address)).toBe(key);
  });
});

describe('the parameters in the address that the gateway calls', () => {
  const ADA = { 'x-user-id': 'ada', ...OF_REQUEST };

  it('are the rule, the cost and the request id', async () => {
    opened();
    expect((await ask(ADA, '?rule=burst%2Fa&cost=3&request_id=r1&deny_status=403')).statusCode).toBe(200);
    expect(listener.asked).toEqual([
      questionOf({ userId: 'ada', rule: 'burst/a', cost: 3, requestId: 'r1' }),
    ]);
  });

  it.each([
    ['?cost=0', 'cost'],
    ['?cost=1.5', 'cost'],
    ['?cost=1000001', 'cost'],
    ['?rule=', 'rule'],
    [`?request_id=${'x'.repeat(129)}`, 'request_id'],
    ['?deny_status=401', 'deny_status'],
    ['?deny_status=', 'deny_status'],
    ['?cost=1&cost=2', 'query'],
    ['?costs=1', 'query'],
    ['?rule=%ff', 'rule'],
  ])('are refused: %s', async (query, field) => {
    opened();
    const response = await ask(ADA, query);
    expect([response.statusCode, response.json<{ error: { field: string } }>().error.field]).toEqual([
      400,
      field,
    ]);
    expect(listener.asked).toEqual([]);
  });

  it('are accepted with GET only', async () => {
    opened();
    for (const method of ['POST', 'HEAD'] as const) {
      const response = await listener.app.inject({ method, url: URL, headers: ADA });
      expect([response.statusCode, response.headers.allow]).toEqual([405, 'GET']);
    }
    expect(listener.asked).toEqual([]);
  });
});

describe('the descriptors of a request', () => {
  it('are its endpoint, method, address and headers', async () => {
    opened();
    expect((await ask({ ...FORWARDED, 'x-user-id': 'ada' }, '?cost=2')).statusCode).toBe(200);
    expect(listener.asked.map(({ descriptors, cost }) => [Object.fromEntries(descriptors), cost])).toEqual([
      [{ method: 'GET', endpoint: '/api/a', user: 'ada', ip: '203.0.113.9' }, 2],
    ]);
  });

  it.each([
    ['/a//b/./c/../d', '/a/b/d'],
    ['/%61pi/%2e%2e/x%2Fy', '/x/y'],
    ['/api/', '/api/'],
    ['/%E6%97%A5', '/日'],
  ])('have one endpoint for every spelling of %s', async (uri, endpoint) => {
    opened();
    await ask({ ...FORWARDED, 'x-forwarded-uri': uri });
    expect(listener.asked[0]?.descriptors.get('endpoint')).toBe(endpoint);
  });

  it.each<[string, Record<string, string | undefined>, string]>([
    ['the method is unknown', { 'x-forwarded-method': undefined }, 'x-forwarded-method'],
    ['the path is unknown', { 'x-forwarded-uri': undefined }, 'x-forwarded-uri'],
    ['the path is malformed', { 'x-forwarded-uri': 'a' }, 'x-forwarded-uri'],
    ['the path is not UTF-8', { 'x-forwarded-uri': '/%ff' }, 'x-forwarded-uri'],
    ['the path is too long', { 'x-forwarded-uri': `/${'a'.repeat(4_096)}` }, 'descriptors.endpoint'],
    ['user and address are unknown', { 'x-forwarded-for': undefined }, 'userId'],
  ])('are incomplete, and the request refused, if %s', async (_what, changes, field) => {
    opened();
    const all = Object.entries<string | undefined>({ ...FORWARDED, ...changes });
    const headers = Object.fromEntries(
      all.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    );
    const response = await ask(headers);
    expect([response.statusCode, response.json<{ error: { field: string } }>().error.field]).toEqual([
      400,
      field,
    ]);
    expect(listener.asked).toEqual([]);
  });

  it('are not needed if a rule is named', async () => {
    opened();
    await ask({ 'x-forwarded-for': '203.0.113.9' }, '?rule=burst');
    const descriptors = new Map([
      ['user', 'ip=203.0.113.9'],
      ['ip', '203.0.113.9'],
    ]);
    expect(listener.asked).toEqual([{ descriptors, rule: 'burst' }]);
  });

  it('give the same request as one from a service', async () => {
    opened();
    await ask({ ...FORWARDED, 'x-user-id': 'ada' });
    await listener.post({
      userId: 'ada',
      descriptors: { method: 'GET', endpoint: '/api/a', ip: '203.0.113.9' },
    });
    expect(listener.asked[0]).toEqual(listener.asked[1]);
  });
});

describe('the answer to a gateway', () => {
  const ADA = { 'x-user-id': 'ada', ...OF_REQUEST };

  it('is a grant that must not be cached', async () => {
    opened();
    const { statusCode, headers, body } = await ask(ADA);
    expect([statusCode, headers['cache-control'], JSON.parse(body)]).toMatchObject([
      200,
      'no-store',
      { allowed: true },
    ]);
    expect(headers['ratelimit']).toContain('"default";r=');
    expect(listener.observed).toEqual([{ status: 200, startedMillis: 777 }]);
    expect(listener.reported.map(({ request }) => request)).toEqual(listener.asked);
  });

  it.each([
    ['', 429],
    ['?deny_status=429', 429],
    ['?deny_status=403', 403],
  ])('is a denial with "%s" as %i, counted as a denial', async (query, status) => {
    opened();
    listener.answer = { kind: 'decision', decision: denialOf() };
    const { statusCode, headers } = await ask(ADA, query);
    expect([statusCode, headers['retry-after']]).toEqual([status, '13']);
    expect(headers['x-ratelimit-reset']).toBe(
      String(Math.ceil((WALL_MILLIS + denialOf().resetMillis) / 1000)),
    );
    expect(listener.observed.map(({ status: counted }) => counted)).toEqual([429]);
  });

  it.each([
    ['a block without a time to come back', 0, undefined],
    ['a block with an end and the time to come back', 12_300, '13'],
  ])('for %s is 403', async (_, retryAfterMillis, retryAfter) => {
    opened();
    listener.answer = { kind: 'decision', decision: denialOf({ isBlocked: true, retryAfterMillis }) };
    const { statusCode, headers } = await ask(ADA);
    expect([statusCode, headers['retry-after']]).toEqual([403, retryAfter]);
  });

  it('is 503 if no node can decide, for any status of denials', async () => {
    opened();
    listener.answer = { kind: 'unavailable', reason: 'no_leader', proposed: false };
    expect((await ask(ADA, '?deny_status=403')).statusCode).toBe(503);
  });
});

describe('in a closed cluster', () => {
  it.each([
    ['a token as Authorization', { authorization: 'Bearer decide-token' }, 200],
    [
      'a token of its own beside that of its client',
      { authorization: 'Bearer x', 'x-quorate-token': 'decide-token' },
      200,
    ],
    ['a wrong token of its own', { authorization: 'Bearer decide-token', 'x-quorate-token': 'x' }, 401],
    ['no token', {}, 401],
    ['a token of another role', { 'x-quorate-token': 'read-token' }, 403],
  ])('a gateway with %s', async (_what, headers, status) => {
    opened();
    listener.access.close();
    expect((await ask({ ...OF_REQUEST, 'x-user-id': 'ada', ...headers })).statusCode).toBe(status);
    expect(listener.asked).toHaveLength(status === 200 ? 1 : 0);
  });
});
