/** An overloaded node refuses requests before it reads their bodies. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import { decisionOf } from '../api/decision-of.ts';
import { eventually } from '../cluster/harness.ts';
import { Listener } from './fixtures.ts';

let listener: Listener;

afterEach(async () => listener.app.close());

describe('a node that sheds load', () => {
  it.each([
    ['POST', '/v1/allow'],
    ['POST', '/v1/allow/batch'],
    ['POST', '/v1/refunds'],
    ['POST', '/v1/users/ada/refunds'],
    ['GET', '/v1/users/ada'],
    ['GET', '/v1/keys/user=ada'],
  ] as const)('refuses %s %s as 503 that charged nothing, for any body', async (method, url) => {
    listener = new Listener();
    listener.shedding.refused = true;
    const response = await listener.app.inject({
      method,
      url,
      ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, payload: '{no json' }),
    });
    expect(response.statusCode).toBe(503);
    expect(response.headers['retry-after']).toBe('1');
    expect(response.headers['content-type']).toContain('application/problem+json');
    expect(response.json()).toMatchObject({ allowed: false, reason: 'overloaded', proposed: false });
    expect([listener.asked, listener.peeks, listener.refunds]).toEqual([[], [], []]);
    const counted = url.startsWith('/v1/allow') ? [503] : [];
    expect(listener.observed.map(({ status }) => status)).toEqual(counted);
    expect(listener.refusedUnread).toBe(counted.length);
  });

  it('still reports its state, and accepts commands of operators', async () => {
    listener = new Listener();
    listener.shedding.refused = true;
    for (const url of ['/healthz', '/readyz', '/metrics', '/v1/cluster'])
      expect((await listener.app.inject({ method: 'GET', url })).statusCode).toBe(200);
    const response = await listener.app.inject({ method: 'PUT', url: '/v1/users/ada/block' });
    expect(response.statusCode).not.toBe(503);
  });

  it('keeps the connection, unless it is about to stop', async () => {
    listener = new Listener();
    listener.shedding.refused = true;
    const kept = await listener.app.inject({ method: 'POST', url: '/v1/allow' });
    expect(kept.headers.connection).not.toBe('close');
    listener.readiness = { status: 'stopping' };
    const last = await listener.app.inject({ method: 'POST', url: '/v1/allow' });
    expect(last.headers.connection).toBe('close');
  });
});

describe('the open requests of a client', () => {
  it('count until they are answered, each request of a batch separately', async () => {
    listener = new Listener();
    listener.answer = undefined;
    const one = listener.post({ userId: 'ada' });
    const batch = listener.post(
      { requests: [{ userId: 'a' }, { userId: 'b' }] },
      'application/json',
      '/v1/allow/batch',
    );
    await eventually('all are asked', () => (listener.open.length === 3 ? true : undefined));
    expect([...listener.shedding.fractions.values()].map(({ open }) => open)).toEqual([3]);
    for (const done of listener.open) done({ kind: 'decision', decision: decisionOf() }, 0);
    await Promise.all([one, batch]);
    expect([...listener.shedding.fractions.values()].map(({ open }) => open)).toEqual([0]);
  });

  it('are counted by the token if there is one', async () => {
    listener = new Listener();
    listener.access.now = 'closed';
    listener.access.callers.set('qt_secret', { id: 'gateway', role: 'decide' });
    await listener.app.inject({
      method: 'POST',
      url: '/v1/allow',
      headers: { 'content-type': 'application/json', authorization: 'Bearer qt_secret' },
      payload: '{"userId":"ada"}',
    });
    expect(listener.shedding.asked).toEqual(['gateway']);
  });
});

describe('connections of one address', () => {
  it('are bounded in number: one more is closed', async () => {
    listener = new Listener({ ...HTTP_LIMITS, connectionsPerAddressMax: 1 });
    const port = await listener.listen();
    const first = connect({ port, host: '127.0.0.1' });
    await eventually('it is counted', async () =>
      (await listener.listener.connectionCount()) === 1 ? true : undefined,
    );
    let isClosed = false;
    const second = connect({ port, host: '127.0.0.1' });
    second.on('error', () => {});
    second.on('close', () => {
      isClosed = true;
    });
    try {
      await eventually('the second is closed', () => (isClosed ? true : undefined));
      expect(first.destroyed).toBe(false);
    } finally {
      first.destroy();
      second.destroy();
    }
  });
});
