/** `POST /v1/allow/batch`: each request is decided separately and answered at its position. */
import { describe, expect, it } from 'vitest';
import { type AskAnswer, questionOf } from '../../src/api/question.ts';
import { BATCH_BODY_BYTES_MAX, BATCH_MAX } from '../../src/http/batch-route.ts';
import { decisionOf } from '../api/decision-of.ts';
import { until } from '../transport/wait.ts';
import { denialOf, Listener, type HttpResult, PARTITION } from './fixtures.ts';

const ANSWERS: readonly AskAnswer[] = [
  { kind: 'decision', decision: decisionOf(), key: 'user=user-0' },
  { kind: 'decision', decision: denialOf() },
  { kind: 'invalid', field: 'rule', message: "there is no rule 'x'" },
  { kind: 'conflict', field: 'cost', message: 'used before' },
  { kind: 'unavailable', reason: 'no_leader', proposed: false },
  { kind: 'unlimited', rulesVersion: 7 },
];

const ask = (listener: Listener, body: unknown): Promise<HttpResult> =>
  listener.post(body, 'application/json', '/v1/allow/batch');

function usersOf(count: number): { readonly userId: string }[] {
  return Array.from({ length: count }, (_, i) => ({ userId: `user-${i}` }));
}

/** A node that answers each request only when the test says so. */
function heldListener(): Listener {
  const listener = new Listener();
  listener.answer = undefined;
  return listener;
}

async function untilAsked(listener: Listener, count: number): Promise<void> {
  await until(`the node is asked for ${count}`, () => listener.open.length >= count);
}

describe('POST /v1/allow/batch', () => {
  it('answers each request at its position, as if it had come alone', async () => {
    const listener = heldListener();
    const response = ask(listener, { requests: usersOf(ANSWERS.length) });
    await untilAsked(listener, ANSWERS.length);
    // The last is decided first.
    for (const [i, answer] of [...ANSWERS.entries()].reverse()) listener.open[i]?.(answer, PARTITION);
    const { status, body } = await response;
    const alone: unknown[] = [];
    for (const answer of ANSWERS) {
      listener.answer = answer;
      const single = await listener.post({ userId: 'ada' });
      alone.push({ status: single.status, ...single.body });
    }
    expect(status).toBe(200);
    expect(body).toEqual({ answers: alone });
    expect(alone.map((each) => (each as { status: number }).status)).toEqual([200, 429, 400, 422, 503, 200]);
  });

  it('asks with all fields of each request, in the order of the list', async () => {
    const listener = new Listener();
    const wanted = { userId: 'ada', cost: 3, rule: '10/1000ms', timestampMillis: 5, requestId: 'r' };
    await ask(listener, { requests: [wanted, { descriptors: { user: 'bob' } }] });
    expect(listener.asked).toEqual([questionOf(wanted), questionOf({ userId: 'bob' })]);
  });

  it('answers nothing before the last of them is decided', async () => {
    const listener = heldListener();
    let isAnswered = false;
    const response = ask(listener, { requests: usersOf(2) }).then((result) => {
      isAnswered = true;
      return result;
    });
    await untilAsked(listener, 2);
    listener.open[1]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    listener.open[0]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    expect((await response).status).toBe(200);
  });

  it('counts every answer by its own status', async () => {
    const listener = heldListener();
    const response = ask(listener, { requests: usersOf(2) });
    await untilAsked(listener, 2);
    listener.open[0]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    listener.open[1]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    await response;
    expect(listener.observed.map(({ status }) => status)).toEqual([200, 429]);
  });

  it.each([
    [{}, 'requests', /list of 1 to 1000/],
    [{ requests: [] }, 'requests', /list of 1 to 1000/],
    [{ requests: 'ada' }, 'requests', /list of 1 to 1000/],
    [{ requests: usersOf(BATCH_MAX + 1) }, 'requests', /list of 1 to 1000/],
    [{ requests: usersOf(1), more: 1 }, 'more', /fields are requests/],
    [[], 'body', /object with requests/],
  ])('asks the node for nothing if the body is no list of requests: %j', async (body, field, message) => {
    const listener = new Listener();
    const result = await ask(listener, body);
    expect(result.status).toBe(400);
    expect(result.body.error?.field).toBe(field);
    expect(result.body.error?.message).toMatch(message);
    expect(listener.asked).toEqual([]);
    expect(listener.observed.map(({ status }) => status)).toEqual([400]);
  });

  it.each([
    [{ userId: 'bob', cost: 0 }, 'cost'],
    [{ userId: 'bob', costs: 2 }, 'costs'],
    [{ userId: '' }, 'userId'],
    [{ descriptors: { ip: 7 } }, 'descriptors.ip'],
    [{}, 'userId'],
    [7, 'body'],
    [null, 'body'],
  ])('refuses a malformed request at its position, and decides the others: %j', async (malformed, field) => {
    const listener = heldListener();
    const response = ask(listener, { requests: [{ userId: 'ada' }, malformed, { userId: 'eve' }] });
    await untilAsked(listener, 2);
    expect(listener.asked).toEqual([questionOf({ userId: 'ada' }), questionOf({ userId: 'eve' })]);
    listener.open[1]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    listener.open[0]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    const { status, body } = await response;
    const alone = await listener.post(malformed);
    expect(alone).toMatchObject({ status: 400, body: { error: { field } } });
    expect(status).toBe(200);
    expect(body['answers']).toMatchObject([{ status: 200 }, { status: 400, ...alone.body }, { status: 429 }]);
    expect(listener.observed.map((each) => each.status)).toEqual([400, 429, 200, 400]);
    expect(listener.reported).toHaveLength(2);
    expect([...listener.shedding.fractions.values()]).toEqual([{ open: 0 }]);
  });

  it('refuses a request that has a key twice at its position', async () => {
    const listener = new Listener();
    const { status, body } = await ask(
      listener,
      '{"requests":[{"userId":"ada"},{"userId":"bob","\\u0075serId":"eve"}]}',
    );
    expect(status).toBe(200);
    expect(body['answers']).toMatchObject([
      { status: 200 },
      { status: 400, allowed: false, error: { type: 'invalid_request', field: 'userId' } },
    ]);
    expect(listener.asked).toEqual([questionOf({ userId: 'ada' })]);
    const twice = await ask(listener, '{"requests":[{"userId":"ada"}],"requests":[{"userId":"bob"}]}');
    expect(twice).toMatchObject({ status: 400, body: { error: { field: 'requests' } } });
  });

  it('does not ask the node if all requests are malformed', async () => {
    const listener = new Listener();
    const { status, body } = await ask(listener, { requests: [{}, 7] });
    expect(status).toBe(200);
    expect(body['answers']).toMatchObject([{ status: 400 }, { status: 400 }]);
    expect(listener.asked).toEqual([]);
    expect([...listener.shedding.fractions.values()]).toEqual([{ open: 0 }]);
  });

  it('accepts the documented number of requests, and no body beyond its bound', async () => {
    const listener = new Listener();
    const full = await ask(listener, { requests: usersOf(BATCH_MAX) });
    expect(full.body['answers']).toHaveLength(BATCH_MAX);
    const result = await ask(listener, `{"requests":[${' '.repeat(BATCH_BODY_BYTES_MAX)}]}`);
    expect(result.status).toBe(413);
    expect(result.body.error?.message).toContain(String(BATCH_BODY_BYTES_MAX));
  });
});
