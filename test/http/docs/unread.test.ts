/**
 * The answers while the node does not know which tokens are valid match docs/openapi.json. The listener does not read
 * these
 * requests.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Listener } from '../fixtures.ts';
import { OPERATIONS, wrongInAnswer } from './described.ts';

const CLOSED = [...OPERATIONS].filter(([, { security }]) => security === undefined).map(([route]) => route);

let listener: Listener;
beforeAll(() => {
  listener = new Listener();
  listener.access.now = 'unknown';
});
afterAll(() => listener.app.close());

describe('while the node does not know which tokens are valid', () => {
  it.each(CLOSED)('the answer matches the document: %s', async (route) => {
    const [method = '', path = ''] = route.split(' ');
    const url = path.replace('*', 'default').replaceAll(/:\w+/g, '2');
    const headers = { authorization: 'Bearer admin-token' };
    const answer = await listener.app.inject({ method: method as 'GET', url, headers });
    expect([answer.statusCode, wrongInAnswer(route, answer)]).toEqual([503, []]);
  });
});
