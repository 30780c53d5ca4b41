/** `POST /v1/users/{id}/refunds` and `POST /v1/refunds`: the requests to the node, and the answers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { Listener, PARTITION } from './fixtures.ts';

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
});

afterEach(() => listener.app.close());

async function refund(payload: unknown, url = '/v1/users/ada/refunds'): Promise<readonly [number, unknown]> {
  const headers = { 'content-type': 'application/json' };
  const response = await listener.app.inject({
    method: 'POST',
    url,
    headers,
    payload: JSON.stringify(payload),
  });
  return [response.statusCode, response.json()];
}

describe('POST /v1/users/{id}/refunds', () => {
  it('refunds a grant, and returns the receipt of the grant', async () => {
    expect(await refund({ requestId: 'r1' }, '/v1/users/a%2Fb/refunds')).toEqual([
      200,
      {
        refunded: true,
        rule: 'default',
        cost: 2,
        rulesVersion: 7,
        decided: { partition: PARTITION, term: 2, index: 7, position: 1, timeMillis: 90 },
      },
    ]);
    expect(listener.refunds).toEqual([{ ...questionOf({ userId: 'a/b' }), requestId: 'r1' }]);
    expect(listener.observed).toEqual([]);
  });

  it('is 404 if no such grant is remembered', async () => {
    const decided = { term: 2, index: 9, position: 0, timeMillis: 95 };
    listener.refunded = {
      kind: 'refund',
      refund: { refunded: false, ruleId: '', cost: 0, decided, rulesVersion: 7 },
      kept: [],
    };
    expect(await refund({ requestId: 'r1' })).toMatchObject([
      404,
      {
        refunded: false,
        decided: { partition: PARTITION, ...decided },
        error: { type: 'not_remembered', field: 'requestId' },
      },
    ]);
  });

  it('is 503 if no node can answer', async () => {
    listener.refunded = { kind: 'unavailable', reason: 'deadline', proposed: true };
    expect(await refund({ requestId: 'r1' })).toMatchObject([503, { reason: 'deadline', proposed: true }]);
  });

  it.each([
    [{}, 'requestId'],
    [{ requestId: '' }, 'requestId'],
    [{ requestId: 'r'.repeat(129) }, 'requestId'],
    [{ requestId: 7 }, 'requestId'],
    [{ requestId: 'r1', cost: 1 }, 'cost'],
    [[], 'body'],
  ])('%j is refused for its %s', async (body, field) => {
    expect(await refund(body)).toMatchObject([400, { error: { field } }]);
    expect(listener.refunds).toEqual([]);
  });

  it('is refused for an invalid user, and accepts no other method', async () => {
    const long = `/v1/users/${'a'.repeat(257)}/refunds`;
    expect(await refund({ requestId: 'r1' }, long)).toMatchObject([400, { error: { field: 'userId' } }]);
    const response = await listener.app.inject('/v1/users/ada/refunds');
    expect([response.statusCode, response.headers.allow]).toEqual([405, 'POST']);
  });

  it('makes the request id a conflict that names the refund', async () => {
    listener.answer = { kind: 'conflict', field: 'requestId', message: 'refunded' };
    const { status, body } = await listener.post({ userId: 'ada', requestId: 'r1' });
    expect([status, body.error?.type, body.error?.field]).toEqual([422, 'request_id_refunded', 'requestId']);
  });
});

describe('POST /v1/refunds', () => {
  const asked = { descriptors: { ip: '10.0.0.1' }, userId: 'ada', requestId: 'r1' };
  const granted = { ruleId: 'user', cost: 2, decided: { term: 2, index: 7, position: 0, timeMillis: 90 } };
  const done = { refunded: true, ...granted, rulesVersion: 7 };

  it('gives back by descriptors, and reports which limits stay charged', async () => {
    const kept = [{ ruleId: 'net', userId: 'ip=10.0.0.1' }];
    listener.refunded = { kind: 'refund', refund: done, kept };
    expect(await refund(asked, '/v1/refunds')).toEqual([
      200,
      {
        refunded: true,
        rule: 'user',
        cost: 2,
        rulesVersion: 7,
        decided: { partition: PARTITION, ...granted.decided },
        kept: [{ rule: 'net', key: 'ip=10.0.0.1' }],
      },
    ]);
    const descriptors = new Map([
      ['ip', '10.0.0.1'],
      ['user', 'ada'],
    ]);
    expect(listener.refunds).toEqual([{ descriptors, requestId: 'r1' }]);
  });

  it.each([
    [{ userId: 'ada', requestId: 'r1' }],
    [{ descriptors: { user: 'ada' }, requestId: 'r1' }],
    [{ descriptors: { user: 'ada' }, userId: 'ada', requestId: 'r1' }],
  ])('is the same for a user as the route of the user: %j', async (body) => {
    await refund(body, '/v1/refunds');
    await refund({ requestId: 'r1' });
    const question = { ...questionOf({ userId: 'ada' }), requestId: 'r1' };
    expect(listener.refunds).toEqual([question, question]);
  });

  it('names the rule that the request named', async () => {
    await refund({ userId: 'ada', rule: '100/60000ms', requestId: 'r1' }, '/v1/refunds');
    expect(listener.refunds).toEqual([
      { ...questionOf({ userId: 'ada', rule: '100/60000ms' }), requestId: 'r1' },
    ]);
  });

  it('omits the limits that stay charged if they are unknown', async () => {
    listener.refunded = { kind: 'refund', refund: done, kept: undefined };
    const [status, body] = await refund(asked, '/v1/refunds');
    expect([status, body]).toMatchObject([200, { refunded: true }]);
    expect(body).not.toHaveProperty('kept');
  });

  it('is 404 if nothing was granted, or no rule has a limit', async () => {
    listener.refunded = { kind: 'unlimited', rulesVersion: 7 };
    expect(await refund(asked, '/v1/refunds')).toMatchObject([
      404,
      { refunded: false, rulesVersion: 7, error: { type: 'not_remembered', field: 'descriptors' } },
    ]);
    listener.refunded = { kind: 'refund', refund: { ...done, refunded: false }, kept: [] };
    expect(await refund(asked, '/v1/refunds')).toMatchObject([404, { error: { field: 'requestId' } }]);
  });

  it('is 503 if no node can answer', async () => {
    listener.refunded = { kind: 'unavailable', reason: 'deadline', proposed: true };
    expect(await refund(asked, '/v1/refunds')).toMatchObject([503, { reason: 'deadline', proposed: true }]);
  });

  it.each([
    [{ descriptors: asked.descriptors }, 'requestId'],
    [{ ...asked, requestId: 'r'.repeat(129) }, 'requestId'],
    [{ requestId: 'r1' }, 'userId'],
    [{ requestId: 'r1', descriptors: {} }, 'descriptors'],
    [{ ...asked, userId: '' }, 'userId'],
    [{ ...asked, descriptors: { user: 'bob' } }, 'userId'],
    [{ ...asked, descriptors: ['ip'] }, 'descriptors'],
    [{ ...asked, descriptors: { ip: 7 } }, 'descriptors.ip'],
    [{ ...asked, rule: '' }, 'rule'],
    [[], 'body'],
  ])('%j is refused for its %s', async (body, field) => {
    expect(await refund(body, '/v1/refunds')).toMatchObject([400, { error: { field } }]);
    expect(listener.refunds).toEqual([]);
  });
});
