/** `settle` of `POST /v1/allow`, alone and in a batch: a cost that was used already. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { questionOf } from '../../src/api/question.ts';
import { Door } from './fixtures.ts';

let door: Door;

beforeEach(() => {
  door = new Door();
});

afterEach(() => door.app.close());

async function post(payload: unknown, url = '/v1/allow'): Promise<readonly [number, unknown]> {
  const headers = { 'content-type': 'application/json' };
  const response = await door.app.inject({ method: 'POST', url, headers, payload: JSON.stringify(payload) });
  return [response.statusCode, response.json()];
}

describe('settle', () => {
  it('is asked as it is said', async () => {
    expect(await post({ userId: 'ada', cost: 1_500, settle: true })).toMatchObject([200, { allowed: true }]);
    await post({ requests: [{ userId: 'ada', settle: true }, { userId: 'ada' }] }, '/v1/allow/batch');
    expect(door.asked).toEqual([
      { ...questionOf({ userId: 'ada', cost: 1_500 }), settle: true },
      { ...questionOf({ userId: 'ada' }), settle: true },
      questionOf({ userId: 'ada' }),
    ]);
  });

  it.each([false, null])('that is %j asks for a grant', async (settle) => {
    await post({ userId: 'ada', settle });
    expect(door.asked).toEqual([questionOf({ userId: 'ada' })]);
  });

  it.each([1, 'true', {}])('may not be %j', async (settle) => {
    expect(await post({ userId: 'ada', settle })).toMatchObject([400, { error: { field: 'settle' } }]);
    expect(door.asked).toEqual([]);
  });
});
