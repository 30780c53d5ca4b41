/** `settle` of `POST /v1/allow`, alone and in a batch. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { Listener } from './fixtures.ts';

let listener: Listener;

beforeEach(() => {
  listener = new Listener();
});

afterEach(() => listener.app.close());

describe('settle', () => {
  it('is passed to the node', async () => {
    const settled = await listener.post({ userId: 'ada', cost: 1_500, settle: true });
    expect(settled).toMatchObject({ status: 200, body: { allowed: true } });
    const batch = { requests: [{ userId: 'ada', settle: true }, { userId: 'ada' }] };
    await listener.post(batch, 'application/json', '/v1/allow/batch');
    expect(listener.asked).toEqual([
      { ...questionOf({ userId: 'ada', cost: 1_500 }), settle: true },
      { ...questionOf({ userId: 'ada' }), settle: true },
      questionOf({ userId: 'ada' }),
    ]);
  });

  it.each([false, null])('as %j asks for a grant', async (settle) => {
    await listener.post({ userId: 'ada', settle });
    expect(listener.asked).toEqual([questionOf({ userId: 'ada' })]);
  });

  it.each([1, 'true', {}])('may not be %j', async (settle) => {
    const answer = await listener.post({ userId: 'ada', settle });
    expect(answer).toMatchObject({ status: 400, body: { error: { field: 'settle' } } });
    expect(listener.asked).toEqual([]);
  });
});
