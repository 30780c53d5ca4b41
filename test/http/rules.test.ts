/** `GET` and `PUT /v1/rules`: the rules in force, and changes, which happen completely or not at all. */
import { afterEach, describe, expect, it } from 'vitest';
import { RULE_ID_BYTES_MAX } from '../../src/api/request.ts';
import { RULES_BODY_BYTES_MAX } from '../../src/http/rules-route.ts';
import { RULES_MAX, validateRuleTable } from '../../src/limiter/rules.ts';
import { Listener } from './fixtures.ts';

let listener = new Listener();
const rules = [{ id: 'default', limit: 3, windowMillis: 1_000 }];

afterEach(async () => {
  await listener.app.close();
  listener = new Listener();
});

async function put(
  payload: unknown,
  headers: Readonly<Record<string, string>> = {},
  remoteAddress = '127.0.0.1',
): Promise<{ status: number; body: unknown; etag: string | undefined }> {
  const response = await listener.app.inject({
    method: 'PUT',
    url: '/v1/rules',
    headers: { 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(payload),
    remoteAddress,
  });
  return { status: response.statusCode, body: response.json(), etag: response.headers.etag };
}

describe('the rules over HTTP', () => {
  it('are returned with their version, or 503 while none are known', async () => {
    expect((await listener.app.inject('/v1/rules')).statusCode).toBe(503);
    const table = validateRuleTable({ version: 7, rules });
    listener.rules = table;
    const response = await listener.app.inject('/v1/rules');
    expect([response.statusCode, response.headers.etag, response.json()]).toEqual([200, '"7"', table]);
  });

  it('are changed if those in force are still the ones that the client read', async () => {
    const answer = await put({ rules, clockDriftPpm: 50 }, { 'if-match': '"7"' });
    expect(answer).toEqual({ status: 200, etag: '"8"', body: { version: 8, pending: [] } });
    expect(listener.changesOf('rules')).toEqual([{ table: { rules, clockDriftPpm: 50 }, ifVersion: 7 }]);
  });

  it.each([{}, { 'if-match': '*' }])('are changed in any version, with %j', async (headers) => {
    expect((await put({ rules }, headers)).status).toBe(200);
    expect(listener.changesOf('rules')).toEqual([{ table: { rules }, ifVersion: undefined }]);
  });

  it('are accepted even if a partition has no leader, which is named', async () => {
    listener.changed = { ok: true, version: 8, pending: [3] };
    expect(await put({ rules })).toMatchObject({ status: 202, body: { version: 8, pending: [3] } });
  });

  it('are refused with the field that is out of bounds', async () => {
    const message = 'rules[0].limit must be an integer from 0 to 1000000, but is -1';
    listener.changed = { ok: false, reason: 'invalid', field: 'rules[0].limit', message };
    const error = { type: 'invalid_request', field: 'rules[0].limit', message };
    expect(await put({ rules })).toMatchObject({ status: 400, body: { error } });
  });

  it.each([
    [{ rules, version: 9 }, {}],
    [{ rules, colour: 'red' }, {}],
    [[], {}],
    [{ rules }, { 'if-match': '7' }],
    [{ rules }, { 'if-match': 'W/"7"' }],
    [{ rules }, { 'if-match': '"7", "8"' }],
    [{ rules }, { 'if-match': '"-7"' }],
  ])('refuse %j with %j', async (body, headers) => {
    expect((await put(body, headers)).status).toBe(400);
    expect(listener.changesOf('rules')).toEqual([]);
  });

  it('cannot be changed from other machines or by a browser', async () => {
    expect((await put({ rules }, {}, '10.0.0.7')).status).toBe(403);
    expect((await put({ rules }, { origin: 'http://evil.example' })).status).toBe(403);
    expect(listener.changesOf('rules')).toEqual([]);
  });

  it('may be as many as a table holds, with the longest ids, and no body is longer', async () => {
    const table = validateRuleTable({
      version: 1,
      rules: Array.from({ length: RULES_MAX }, (_, i) => ({
        // Six bytes each in JSON.
        id: String(i).padEnd(RULE_ID_BYTES_MAX, '\u0001'),
        limit: 499_999,
        windowMillis: 2_678_400_000,
        meter: 'leakyBucket',
        burst: 499_999,
        queue: 499_999,
      })),
    });
    const body = { rules: table.rules, requestIdHorizonMillis: 120_000, partitionBytesMax: 268_435_456 };
    expect((await put(body)).status).toBe(200);
    expect(listener.changesOf('rules')).toEqual([{ table: body, ifVersion: undefined }]);
    const tooLong = { rules: 'x'.repeat(RULES_BODY_BYTES_MAX) };
    expect(await put(tooLong)).toMatchObject({
      status: 413,
      body: { error: { field: 'body', message: `body must be at most ${RULES_BODY_BYTES_MAX} bytes` } },
    });
  });
});

describe('one rule over HTTP', () => {
  const url = '/v1/rules/tier%2Fpro';
  const rule = { id: 'tier/pro', limit: 3, windowMillis: 1_000 };

  it('is returned by its id with the version of all rules, while it exists', async () => {
    expect((await listener.app.inject(url)).statusCode).toBe(503);
    const table = validateRuleTable({ version: 7, rules: [rule] });
    listener.rules = table;
    const reported = await listener.app.inject(url);
    expect([reported.statusCode, reported.headers.etag, reported.json()]).toEqual([
      200,
      '"7"',
      table.rules[0],
    ]);
    expect((await listener.app.inject('/v1/rules/tier')).statusCode).toBe(404);
  });

  it('is replaced or removed, if the rules are still those that the client read', async () => {
    const { id, ...payload } = rule;
    const headers = { 'if-match': '"7"' };
    const put = await listener.app.inject({ method: 'PUT', url, headers, payload: { id, ...payload } });
    expect([put.statusCode, put.headers.etag]).toEqual([200, '"8"']);
    const taken = await listener.app.inject({ method: 'DELETE', url });
    expect(taken.statusCode).toBe(200);
    expect(listener.changesOf('rules')).toEqual([
      { table: {}, rule: { id, body: payload }, ifVersion: 7 },
      { table: {}, rule: { id }, ifVersion: undefined },
    ]);
  });

  it('cannot be removed if it does not exist', async () => {
    listener.changed = { ok: false, reason: 'unknownRule' };
    expect((await listener.app.inject({ method: 'DELETE', url })).statusCode).toBe(404);
  });

  it.each([[[]], ['text'], [{ ...rule, id: 'other' }], [{ ...rule, id: 7 }]])('is not %j', async (body) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await listener.app.inject({ method: 'PUT', url, headers, payload: JSON.stringify(body) });
    expect(answer.statusCode).toBe(400);
    expect(listener.changesOf('rules')).toEqual([]);
  });

  it.each(['PUT', 'DELETE'] as const)('cannot be changed from another machine: %s', async (method) => {
    const payload = { limit: 3 };
    const answer = await listener.app.inject({ method, url, payload, remoteAddress: '10.0.0.7' });
    expect(answer.statusCode).toBe(403);
    expect(listener.changesOf('rules')).toEqual([]);
  });
});

async function send(
  type: string,
  payload: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: unknown }> {
  const response = await listener.app.inject({
    method: 'PUT',
    url: '/v1/rules',
    headers: { 'content-type': type, ...headers },
    payload,
  });
  return { status: response.statusCode, body: response.json() };
}

describe('a document of rules over HTTP', () => {
  const document = 'rules:\n- {id: a, key: user, windows: {limit: 10, per: minute}} # žluť\n';

  it.each(['application/yaml', 'text/yaml', 'Text/YAML; charset=utf-8'])(
    'is accepted unchanged, as %s',
    async (type) => {
      const answer = await send(type, document, { 'if-match': '"7"' });
      expect(answer).toEqual({ status: 200, body: { version: 8, pending: [] } });
      expect(listener.changesOf('rules')).toEqual([{ table: {}, document, ifVersion: 7 }]);
    },
  );

  it('is returned as its author wrote it, together with its rules', async () => {
    listener.rules = { ...validateRuleTable({ version: 7, rules }), definitions: [], document };
    const reported = await listener.app.inject('/v1/rules');
    expect(reported.json()).toMatchObject({ version: 7, document });
  });

  it('is accepted in JSON', async () => {
    expect((await put({ document })).status).toBe(200);
    expect(listener.changesOf('rules')).toEqual([{ table: {}, document, ifVersion: undefined }]);
  });

  it('is refused completely if its bytes or its declared charset are not UTF-8', async () => {
    const damaged = await send('application/yaml', Buffer.from('rules: \xff', 'latin1'));
    expect(damaged).toMatchObject({ status: 400, body: { error: { field: 'body' } } });
    expect((await send('application/yaml; charset=latin1', document)).status).toBe(415);
    expect((await send('application/yaml', document, { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await send('application/yaml', ' '.repeat(RULES_BODY_BYTES_MAX + 1))).status).toBe(413);
    expect(listener.changesOf('rules')).toEqual([]);
  });

  it.each(['text/plain', 'application/x-yaml', 'multipart/form-data'])(
    'is refused with the supported types if it has another type: %s',
    async (type) => {
      const { status, body } = await send(type, document);
      expect(status).toBe(415);
      expect(JSON.stringify(body)).toContain('application/json, or a rule document, with application/yaml');
      expect(listener.changesOf('rules')).toEqual([]);
    },
  );

  it('is accepted by no other route', async () => {
    const response = await listener.app.inject({
      method: 'POST',
      url: '/v1/allow',
      headers: { 'content-type': 'application/yaml' },
      payload: 'userId: ada',
    });
    expect(response.statusCode).toBe(415);
    expect(listener.asked).toEqual([]);
  });
});
