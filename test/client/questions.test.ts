/** Tests that the listener reads every form of a client's request as the client meant it. */
import { describe, expect, it } from 'vitest';
import { type Question, questionOf } from '../../src/api/question.ts';
import { ALLOW_BATCH, batchBody, heardOf } from '../../src/client/batch.ts';
import { encodeRequest, type PermitRequest } from '../../src/client/permit.ts';
import { parseAllowBody } from '../../src/http/allow-body.ts';
import { Listener } from '../http/fixtures.ts';

function read(request: PermitRequest): Question {
  return parseAllowBody(JSON.parse(encodeRequest(request, request.requestId)), undefined);
}

describe('a request of a client', () => {
  const more = { rule: '100/60000ms', cost: 2, timestampMillis: 5, requestId: 'r1' };

  it.each<[PermitRequest]>([
    [{ userId: 'ada' }],
    [{ descriptors: { user: 'ada' } }],
    [{ userId: 'ada', descriptors: {} }],
    [{ userId: 'ada', descriptors: { user: 'ada' } }],
  ])('is about its user in either form: %j', (request) => {
    expect(read(request)).toEqual(questionOf({ userId: 'ada' }));
    expect(read({ ...request, ...more })).toEqual(questionOf({ userId: 'ada', ...more }));
  });

  it('may have more fields, and name its rule', () => {
    const descriptors = { ip: '10.0.0.1', ['__proto__']: 'a', plan: '' };
    const entries = Object.entries(descriptors);
    expect(read({ descriptors, rule: 'by-ip' })).toEqual({ descriptors: new Map(entries), rule: 'by-ip' });
    expect(read({ userId: 'ada', descriptors })).toEqual({
      descriptors: new Map([...entries, ['user', 'ada']]),
    });
  });
});

it('a malformed request in a batch of a client fails alone', async () => {
  const listener = new Listener();
  const [ada, bob] = ['ada', 'bob'].map((userId) => encodeRequest({ userId }, undefined));
  const requests = [ada ?? '', '{"userId":"eve","costs":2}', bob ?? ''];
  const { status, body } = await listener.post(batchBody(requests), 'application/json', ALLOW_BATCH);
  expect(heardOf({ kind: 'response', status, body: JSON.stringify(body) }, requests.length)).toMatchObject([
    { kind: 'answer', answer: { allowed: true } },
    { kind: 'invalid', field: 'costs' },
    { kind: 'answer', answer: { allowed: true } },
  ]);
});
