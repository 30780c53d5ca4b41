/** Malformed requests over HTTP: each is refused, and the error names the field and its bound. */
import { afterAll, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { Listener } from './fixtures.ts';

const listener = new Listener();

afterAll(() => listener.app.close());

const TEXT_256 = 'text of 1 to 256 bytes';
const NEITHER = 'a request needs userId or descriptors, and this one has neither';
const TEXT_128 = 'text of 1 to 128 bytes';
const COST = 'an integer from 1 to 1000000';
const LONG = 'x'.repeat(4_097);
const MANY = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`d${i}`, 'a']));
const TIME = 'an integer from 0 to 8640000000000000';

/** Expects a refusal: it names the field and its bound, the node was not asked, and it is not a grant. */
async function expectRefused(
  body: unknown,
  status: number,
  field: string,
  bound: string,
  type?: string,
): Promise<void> {
  const asked = listener.asked.length;
  const result = await listener.post(body, type);
  expect(result.body).toMatchObject({ allowed: false, error: { type: 'invalid_request', field } });
  expect(result.body.error?.message).toContain(bound);
  expect(result.body.error?.message).toContain(field);
  expect(result.status).toBe(status);
  expect(result.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(listener.asked).toHaveLength(asked);
}

it('every refusal of a request for a grant is counted, and no refusal on other routes', async () => {
  listener.observed.length = 0;
  await listener.post({ userId: '' });
  await listener.post('{');
  await listener.post(`"${'a'.repeat(9_000)}"`);
  await listener.post('{}', 'text/plain');
  for (const [url, headers] of [
    ['/v1/allow', { 'transfer-encoding': 'chunked' }],
    ['/v1/cluster/nodes', {}],
    ['/v1/nothing', {}],
  ] as const)
    await listener.app.inject({ method: 'POST', url, headers });
  await listener.app.inject({ method: 'GET', url: '/v1/allow' });
  expect(listener.observed.map(({ status }) => status)).toEqual([400, 400, 413, 415, 415]);
  for (const { startedMillis } of listener.observed) expect(startedMillis).toBeLessThanOrEqual(777);
});

describe('a field out of bounds is 400 and named with its bound', () => {
  it.each([
    ['userId and descriptors missing', {}, 'userId', NEITHER],
    ['userId null', { userId: null }, 'userId', NEITHER],
    ['userId empty', { userId: '' }, 'userId', TEXT_256],
    ['userId too long', { userId: 'a'.repeat(257) }, 'userId', TEXT_256],
    ['userId too long in bytes', { userId: '日'.repeat(86) }, 'userId', TEXT_256],
    ['userId too long in bytes of pairs', { userId: '😀'.repeat(65) }, 'userId', TEXT_256],
    ['userId a number', { userId: 7 }, 'userId', TEXT_256],
    ['userId zero', { userId: 0 }, 'userId', TEXT_256],
    ['userId false', { userId: false }, 'userId', TEXT_256],
    ['userId an array', { userId: ['ada'] }, 'userId', TEXT_256],
    ['userId an object', { userId: { length: 3 } }, 'userId', TEXT_256],
    ['userId half a character', '{"userId":"\\ud800"}', 'userId', TEXT_256],
    ['cost zero', { userId: 'ada', cost: 0 }, 'cost', COST],
    ['cost negative', { userId: 'ada', cost: -1 }, 'cost', COST],
    ['cost too large', { userId: 'ada', cost: 1_000_001 }, 'cost', COST],
    ['cost a fraction', { userId: 'ada', cost: 1.5 }, 'cost', COST],
    ['cost infinite', '{"userId":"ada","cost":1e999}', 'cost', COST],
    ['cost a string', { userId: 'ada', cost: '1' }, 'cost', COST],
    ['cost true', { userId: 'ada', cost: true }, 'cost', COST],
    ['cost an array', { userId: 'ada', cost: [1] }, 'cost', COST],
    ['timestampMillis negative', { userId: 'ada', timestampMillis: -1 }, 'timestampMillis', TIME],
    ['timestampMillis a fraction', { userId: 'ada', timestampMillis: 0.5 }, 'timestampMillis', TIME],
    ['timestampMillis too large', { userId: 'ada', timestampMillis: 8.64e15 + 1 }, 'timestampMillis', TIME],
    ['timestampMillis a string', { userId: 'ada', timestampMillis: '2026-01-01' }, 'timestampMillis', TIME],
    ['rule empty', { userId: 'ada', rule: '' }, 'rule', TEXT_128],
    ['rule too long', { userId: 'ada', rule: 'r'.repeat(129) }, 'rule', TEXT_128],
    ['rule a number', { userId: 'ada', rule: 1 }, 'rule', TEXT_128],
    ['requestId empty', { userId: 'ada', requestId: '' }, 'requestId', TEXT_128],
    ['requestId too long in bytes', { userId: 'ada', requestId: 'ü'.repeat(65) }, 'requestId', TEXT_128],
    ['requestId an object', { userId: 'ada', requestId: {} }, 'requestId', TEXT_128],
    ['descriptors a list', { descriptors: ['ada'] }, 'descriptors', 'an object of names and texts'],
    ['descriptors none', { descriptors: {} }, 'descriptors', '1 to 16'],
    ['descriptors too many', { userId: 'ada', descriptors: MANY }, 'descriptors', '1 to 16'],
    ['userId empty beside descriptors', { userId: '', descriptors: { ip: 'a' } }, 'userId', TEXT_256],
    ['userId another', { userId: 'ada', descriptors: { user: 'bob' } }, 'userId', 'must be the same'],
    ['rule too long for descriptors', { descriptors: { ip: 'a' }, rule: LONG }, 'rule', TEXT_128],
  ])('%s', async (_what, body, field, bound) => {
    await expectRefused(body, 400, field, bound);
  });
});

describe('a descriptor out of bounds is 400 and named with its bound', () => {
  it.each([
    [{ '': 'a' }, 'descriptors', 'the name of a descriptor must be text of 1 to 64 bytes'],
    [{ [LONG.slice(0, 65)]: 'a' }, 'descriptors', 'the name of a descriptor must be text of 1 to 64 bytes'],
    [{ ip: 7 }, 'descriptors.ip', 'ip must be text of 0 to 4096 bytes'],
    [{ ip: null }, 'descriptors.ip', 'ip must be text of 0 to 4096 bytes'],
    [{ ip: LONG }, 'descriptors.ip', 'ip must be text of 0 to 4096 bytes'],
  ])('%j', async (descriptors, field, message) => {
    const asked = listener.asked.length;
    expect(await listener.post({ descriptors })).toMatchObject({
      status: 400,
      body: { error: { field, message } },
    });
    expect(listener.asked).toHaveLength(asked);
  });
});

describe('an unknown field is 400 and named', () => {
  it.each([
    ['misspelt', { userId: 'ada', Cost: 5 }, 'Cost'],
    ['internal', { userId: 'ada', ruleId: 'default' }, 'ruleId'],
    ['inherited', { userId: 'ada', toString: 1 }, 'toString'],
    ['long', { userId: 'ada', ['x'.repeat(5_000)]: 1 }, 'x'.repeat(64)],
    ['empty', { userId: 'ada', '': 1 }, ''],
  ])('%s', async (_what, body, field) => {
    await expectRefused(body, 400, field, 'the fields are userId, timestampMillis, cost, rule, requestId');
  });
});

describe('a body that is no object is 400', () => {
  it.each([
    ['null', 'null'],
    ['an array', '[{"userId":"ada"}]'],
    ['a string', '"ada"'],
    ['a number', '1'],
    ['empty', ''],
    ['cut off', '{"userId":"ada"'],
    ['no JSON', 'userId=ada'],
    ['__proto__', '{"userId":"ada","__proto__":{"cost":5}}'],
    ['constructor', '{"userId":"ada","constructor":{"prototype":{"cost":5}}}'],
  ])('%s', async (_what, body) => {
    const asked = listener.asked.length;
    const { status, body: answer } = await listener.post(body);
    expect(status).toBe(400);
    expect(answer).toMatchObject({ allowed: false, error: { type: 'invalid_request' } });
    expect(answer.error?.message).toMatch(/body|constructor|__proto__/);
    expect(listener.asked).toHaveLength(asked);
  });

  it('no body and no type', async () => {
    const response = await listener.app.inject({ method: 'POST', url: '/v1/allow' });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ error: { field: 'body' } });
  });
});

describe('a body that is too large', () => {
  const large = JSON.stringify({ userId: 'ada', rule: 'r'.repeat(8_192) });

  it('is 413 and names the bound', async () => {
    await expectRefused(large, 413, 'body', 'at most 8192 bytes');
  });

  it('is 413 as well without a content-length', async () => {
    const response = await listener.app.inject({
      method: 'POST',
      url: '/v1/allow',
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      payload: large,
    });
    expect(response.statusCode).toBe(413);
    expect(response.json()).toMatchObject({ allowed: false, error: { field: 'body' } });
  });
});

describe('a body of another type is 415, and the error names the supported one', () => {
  it.each(['application/x-www-form-urlencoded', 'application/xml', 'application/jsonp', 'nonsense'])(
    '%s',
    async (type) => {
      await expectRefused('{"userId":"ada"}', 415, 'body', 'application/json', type);
    },
  );

  it('text/plain', async () => {
    await expectRefused('{"userId":"ada"}', 415, 'body', 'application/json', 'text/plain');
  });
});

async function postUser(userId: readonly number[]): Promise<{ status: number; body: unknown }> {
  const payload = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from(userId), Buffer.from('"}')]);
  const headers = { 'content-type': 'application/json' };
  const response = await listener.app.inject({ method: 'POST', url: '/v1/allow', headers, payload });
  return { status: response.statusCode, body: response.json() };
}

describe('bytes that are not UTF-8', () => {
  it.each([
    ['ff', [0xff]],
    ['fe', [0xfe]],
    ['latin1', [0x66, 0xfc, 0x72]],
    ['a cut off character', [0xe6, 0x97]],
    ['an overlong encoding', [0xc0, 0xaf]],
    ['half of a surrogate pair', [0xed, 0xa0, 0x80]],
    ['a character beyond the last one', [0xf4, 0x90, 0x80, 0x80]],
  ])('are 400, and do not all count as one user: %s', async (_what, bytes) => {
    const asked = listener.asked.length;
    const { status, body } = await postUser(bytes);
    expect(status).toBe(400);
    expect(body).toMatchObject({ allowed: false, error: { field: 'body' } });
    expect(JSON.stringify(body)).toContain('UTF-8');
    expect(listener.asked).toHaveLength(asked);
  });

  it('do not affect the replacement character, which is a valid user', async () => {
    expect((await postUser([0xef, 0xbf, 0xbd])).status).toBe(200);
    expect(listener.asked.at(-1)).toEqual(questionOf({ userId: '\ufffd' }));
  });
});

describe('a body in another encoding is 415, and the error names the supported one', () => {
  it.each([
    'application/json; charset=latin1',
    'application/json;charset="ISO-8859-1"',
    'application/json; charset=utf-16',
    'application/json; profile=x; CharSet=us-ascii',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; charset=',
  ])('%s', async (type) => {
    await expectRefused('{"userId":"ada"}', 415, 'body', 'UTF-8', type);
  });

  it.each(['gzip', 'br', 'identity, gzip'])('content-encoding: %s', async (coding) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': coding };
    const payload = '{"userId":"ada"}';
    const response = await listener.app.inject({ method: 'POST', url: '/v1/allow', headers, payload });
    expect(response.statusCode).toBe(415);
    expect(response.json()).toMatchObject({ allowed: false, error: { field: 'body' } });
  });
});

describe('a request within the bounds', () => {
  it.each([
    [{ userId: 'a' }, questionOf({ userId: 'a' })],
    [{ userId: 'a'.repeat(256) }, questionOf({ userId: 'a'.repeat(256) })],
    [{ userId: '😀'.repeat(64) }, questionOf({ userId: '😀'.repeat(64) })],
    [
      { userId: '__proto__', rule: 'x', cost: null, timestampMillis: null },
      questionOf({ userId: '__proto__', rule: 'x' }),
    ],
    [
      { userId: 'ada', timestampMillis: 0, cost: 1_000_000, rule: 'r', requestId: 'q' },
      questionOf({ userId: 'ada', timestampMillis: 0, cost: 1_000_000, rule: 'r', requestId: 'q' }),
    ],
  ])('is passed to the node unchanged: %j', async (body, request) => {
    const { status } = await listener.post(body);
    expect(status).toBe(200);
    expect(listener.asked.at(-1)).toEqual(request);
  });

  it.each([
    { descriptors: { user: 'ada' } },
    { userId: 'ada', descriptors: {} },
    { userId: 'ada', descriptors: { user: 'ada' } },
    { userId: null, descriptors: { user: 'ada' } },
    { userId: 'ada', descriptors: null },
  ])('is the same with a user id and with a descriptor: %j', async (body) => {
    for (const more of [{}, { rule: 'r', cost: 2, timestampMillis: 5, requestId: 'q' }]) {
      expect((await listener.post({ ...body, ...more })).status).toBe(200);
      expect(listener.asked.at(-1)).toEqual(questionOf({ userId: 'ada', ...more }));
    }
  });

  it('may have further descriptors beside its user', async () => {
    await listener.post({ userId: 'ada', descriptors: { ip: '10.0.0.1', plan: '' } });
    const said = { ip: '10.0.0.1', plan: '', user: 'ada' };
    expect(listener.asked.at(-1)).toEqual({ descriptors: new Map(Object.entries(said)) });
  });

  it.each(['application/json; charset=utf-8', 'application/json;charset="UTF-8"', 'application/json; a=b'])(
    'may declare its charset: %s',
    async (type) => {
      const { status } = await listener.post({ userId: 'ünal' }, type);
      expect(status).toBe(200);
      expect(listener.asked.at(-1)).toEqual(questionOf({ userId: 'ünal' }));
    },
  );
});

describe('a repeated key is refused and named', () => {
  const rule = '{"id":"a","limit":1,"windowMillis":1000,"limit":9}';
  it.each([
    ['POST', '/v1/allow', '{"userId":"ada","userId":"eve"}', 'userId'],
    ['POST', '/v1/allow', '{"userId":"ada","cost":1,"\\u0063ost":900}', 'cost'],
    ['POST', '/v1/allow', '{"descriptors":{"user":"ada","user":"eve"}}', 'descriptors.user'],
    ['POST', '/v1/refunds', '{"requestId":"a","requestId":"b","userId":"ada"}', 'requestId'],
    ['POST', '/v1/users/ada/refunds', '{"requestId":"a","requestId":"b"}', 'requestId'],
    ['PUT', '/v1/rules', `{"rules":[${rule}]}`, 'rules[0].limit'],
    ['PUT', '/v1/rules/a', rule, 'limit'],
    ['PUT', '/v1/customers/acme', '{"tier":"pro","tier":"free"}', 'tier'],
    ['POST', '/v1/users/ada/reset', '{"a":1,"a":2}', 'a'],
    ['PUT', '/v1/keys/user=ada/block', '{"a":1,"a":2}', 'a'],
    ['POST', '/v1/cluster/nodes', '{"remove":2,"remove":3}', 'remove'],
    ['POST', '/v1/tokens', '{"role":"read","role":"admin"}', 'role'],
  ] as const)('%s %s %s', async (method, url, payload, field) => {
    const asked = { asked: listener.asked.length, operated: listener.operated.length };
    const headers = { 'content-type': 'application/json' };
    const response = await listener.app.inject({ method, url, headers, payload });
    expect(response.statusCode).toBe(400);
    const { error } = response.json<{ error: { field: string; message: string } }>();
    expect(error.field).toBe(field);
    expect(error.message).toBe(`${field} must appear once`);
    expect(listener.asked).toHaveLength(asked.asked);
    expect(listener.operated).toHaveLength(asked.operated);
  });

  it('POST /json, in plain text', async () => {
    const payload = '{"domain":"a","domain":"b","descriptors":[]}';
    const headers = { 'content-type': 'application/json' };
    const { statusCode, body } = await listener.app.inject({
      method: 'POST',
      url: '/json',
      headers,
      payload,
    });
    expect([statusCode, body]).toEqual([400, 'domain must appear once']);
  });
});
