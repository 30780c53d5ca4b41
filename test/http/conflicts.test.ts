/** A request id that belongs to another request is 422 over HTTP, and the answer names the field to change. */
import { afterAll, expect, it } from 'vitest';
import { Listener } from './fixtures.ts';

const listener = new Listener();

afterAll(() => listener.app.close());

// A digest covers all that a request says, and does not show which field differs: the id is the one to change.
it.each([
  ['cost', 'request_id_reused', 'cost'],
  ['descriptors', 'request_id_reused', 'requestId'],
  ['requestId', 'request_id_refunded', 'requestId'],
] as const)('a conflict in %s is %s and names %s', async (field, type, shown) => {
  const message = "requestId 'q' was used before";
  listener.answer = { kind: 'conflict', field, message };
  const { status, headers, body } = await listener.post({ userId: 'ada', requestId: 'q' });
  expect(status).toBe(422);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(body).toEqual({ allowed: false, error: { type, field: shown, message } });
});
