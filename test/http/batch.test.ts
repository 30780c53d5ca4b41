import { describe, expect, it } from 'vitest';
import { type AskAnswer, questionOf } from '../../src/api/question.ts';
import { BATCH_BODY_BYTES_MAX, BATCH_MAX } from '../../src/http/batch-route.ts';
import { decisionOf } from '../api/decision-of.ts';
import { denialOf, Door, type HttpResult, PARTITION } from './fixtures.ts';

const ANSWERS: readonly AskAnswer[] = [
  { kind: 'decision', decision: decisionOf(), key: 'user=user-0' },
  { kind: 'decision', decision: denialOf() },
  { kind: 'invalid', field: 'rule', message: "there is no rule 'x'" },
  { kind: 'conflict', field: 'cost', message: 'used before' },
  { kind: 'unavailable', reason: 'no_leader', proposed: false },
  { kind: 'unlimited', rulesVersion: 7 },
];

const ask = (door: Door, body: unknown): Promise<HttpResult> =>
  door.post(body, 'application/json', '/v1/allow/batch');

function usersOf(count: number): { readonly userId: string }[] {
  return Array.from({ length: count }, (_, i) => ({ userId: `user-${i}` }));
}

/** Answers what is asked when it is told to. */
function heldDoor(): Door {
  const door = new Door();
  door.answer = undefined;
  return door;
}

async function untilAsked(door: Door, count: number): Promise<void> {
  while (door.open.length < count) await new Promise((resolve) => setImmediate(resolve));
}

describe('POST /v1/allow/batch', () => {
  it('answers each request in its place, as if it had come alone', async () => {
    const door = heldDoor();
    const response = ask(door, { requests: usersOf(ANSWERS.length) });
    await untilAsked(door, ANSWERS.length);
    // The last is decided first.
    for (const [i, answer] of [...ANSWERS.entries()].reverse()) door.open[i]?.(answer, PARTITION);
    const { status, body } = await response;
    const alone: unknown[] = [];
    for (const answer of ANSWERS) {
      door.answer = answer;
      const single = await door.post({ userId: 'ada' });
      alone.push({ status: single.status, ...single.body });
    }
    expect(status).toBe(200);
    expect(body).toEqual({ answers: alone });
    expect(alone.map((each) => (each as { status: number }).status)).toEqual([200, 429, 400, 422, 503, 200]);
  });

  it('asks with all that a request can say, in the order of the list', async () => {
    const door = new Door();
    const wanted = { userId: 'ada', cost: 3, rule: '10/1000ms', timestampMillis: 5, requestId: 'r' };
    await ask(door, { requests: [wanted, { descriptors: { user: 'bob' } }] });
    expect(door.asked).toEqual([questionOf(wanted), questionOf({ userId: 'bob' })]);
  });

  it('says nothing before the last of them is decided', async () => {
    const door = heldDoor();
    let isAnswered = false;
    const response = ask(door, { requests: usersOf(2) }).then((result) => {
      isAnswered = true;
      return result;
    });
    await untilAsked(door, 2);
    door.open[1]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    door.open[0]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    expect((await response).status).toBe(200);
  });

  it('counts every answer by its own status', async () => {
    const door = heldDoor();
    const response = ask(door, { requests: usersOf(2) });
    await untilAsked(door, 2);
    door.open[0]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    door.open[1]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    await response;
    expect(door.observed.map(({ status }) => status)).toEqual([200, 429]);
  });

  it.each([
    [{}, 'requests', /list of 1 to 1000/],
    [{ requests: [] }, 'requests', /list of 1 to 1000/],
    [{ requests: 'ada' }, 'requests', /list of 1 to 1000/],
    [{ requests: usersOf(BATCH_MAX + 1) }, 'requests', /list of 1 to 1000/],
    [{ requests: usersOf(1), more: 1 }, 'more', /fields are requests/],
    [[], 'body', /object with requests/],
    [{ requests: [{ userId: 'ada' }, { userId: 'bob', cost: 0 }] }, 'requests[1].cost', /from 1 to/],
    [{ requests: [{ userId: 'ada' }, 7] }, 'requests[1]', /object with at least userId/],
    [{ requests: [{ userId: 'ada', costs: 2 }] }, 'requests[0].costs', /not a field/],
  ])('asks nothing if something is wrong: %j', async (body, field, message) => {
    const door = new Door();
    const result = await ask(door, body);
    expect(result.status).toBe(400);
    expect(result.body.error?.field).toBe(field);
    expect(result.body.error?.message).toMatch(message);
    expect(door.asked).toEqual([]);
    expect(door.observed.map(({ status }) => status)).toEqual([400]);
  });

  it('takes as many as it says, and no body beyond its bound', async () => {
    const door = new Door();
    const full = await ask(door, { requests: usersOf(BATCH_MAX) });
    expect(full.body['answers']).toHaveLength(BATCH_MAX);
    const result = await ask(door, `{"requests":[${' '.repeat(BATCH_BODY_BYTES_MAX)}]}`);
    expect(result.status).toBe(413);
    expect(result.body.error?.message).toContain(String(BATCH_BODY_BYTES_MAX));
  });
});
