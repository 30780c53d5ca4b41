/** The HTTP server: its routes, internal errors, and the order of the answers on a connection. */
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../transport/wait.ts';
import { decisionOf } from '../api/decision-of.ts';
import { Listener, PARTITION, REPORT } from './fixtures.ts';
import { RawClient } from './raw-client.ts';

let listener = new Listener();
const clients: RawClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.destroy();
  await listener.app.close();
  listener = new Listener();
});

describe('routes', () => {
  it('/healthz reports that the process is up, ready or not', async () => {
    listener.readiness = { status: 'starting', loaded: 1, of: 17 };
    const response = await listener.app.inject('/healthz');
    expect([response.statusCode, response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('/readyz reports that the node is ready', async () => {
    const ready = await listener.app.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([200, { status: 'ready' }]);
  });

  it.each([
    { status: 'waiting for leaders' },
    { status: 'starting', loaded: 3, of: 17 },
    { status: 'stopping' },
  ] as const)('/readyz reports the reason for waiting: $status', async (readiness) => {
    listener.readiness = readiness;
    const waiting = await listener.app.inject('/readyz');
    expect([waiting.statusCode, waiting.json()]).toEqual([503, readiness]);
  });

  it('/v1/cluster shows the cluster', async () => {
    const response = await listener.app.inject('/v1/cluster');
    expect([response.statusCode, response.json()]).toEqual([200, REPORT]);
  });

  it('/v1/cluster is unavailable before the node knows the cluster', async () => {
    listener.readiness = { status: 'starting', loaded: 3, of: 17 };
    const response = await listener.app.inject('/v1/cluster');
    expect([response.statusCode, response.json()]).toEqual([503, listener.readiness]);
  });

  it('/metrics is the text that the registry renders', async () => {
    const response = await listener.app.inject('/metrics');
    expect([response.statusCode, response.body]).toEqual([200, 'up 1\n']);
    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  it.each([
    ['POST', '/v1/allow/'],
    ['GET', '/index.html'],
    ['GET', '/v2/allow'],
    ['GET', '/v1/*'],
  ] as const)('others are 404, and no grant: %s %s', async (method, url) => {
    const response = await listener.app.inject({ method, url });
    expect(response.statusCode).toBe(404);
    expect(response.json()).toEqual({
      allowed: false,
      error: { type: 'not_found', message: `no route ${method} ${url}` },
    });
    expect(listener.asked).toEqual([]);
  });

  it.each([
    ['GET', '/v1/allow', 'POST'],
    ['PUT', '/v1/allow?x=1', 'POST'],
    ['OPTIONS', '/v1/cluster/nodes', 'POST'],
    ['POST', '/v1/cluster', 'GET, HEAD'],
    ['DELETE', '/healthz', 'GET, HEAD'],
  ] as const)('another method is 405 and names the one there is: %s %s', async (method, url, allow) => {
    const response = await listener.app.inject({ method, url });
    expect([response.statusCode, response.headers['allow']]).toEqual([405, allow]);
    expect(response.json()).toMatchObject({ allowed: false, error: { type: 'method_not_allowed' } });
    expect(listener.asked).toEqual([]);
  });

  it('with a broken escape are the fault of the client', async () => {
    const response = await listener.app.inject('/v1/%zz');
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ allowed: false, error: { field: 'url' } });
  });
});

describe('a fault of the server', () => {
  it('is 500, not a grant, and reveals no internals', async () => {
    const broken = new Listener();
    Object.defineProperty(broken, 'answer', {
      get() {
        throw new Error('secret');
      },
    });
    const { status, body } = await broken.post({ userId: 'ada' });
    expect(status).toBe(500);
    expect(body).toEqual({ allowed: false, error: { type: 'internal', message: 'internal error' } });
    await broken.app.close();
  });
});

function client(port: number): RawClient {
  const created = new RawClient(port);
  clients.push(created);
  return created;
}

function grant(ruleId: string): void {
  listener.open.shift()?.({ kind: 'decision', decision: decisionOf({ ruleId }) }, PARTITION);
}

describe('a client', () => {
  it.each([
    ['hangs up', (socket: Socket) => socket.end()],
    ['is cut off', (socket: Socket) => socket.resetAndDestroy()],
  ])('that %s before its answer does not affect others', async (_how, leave) => {
    const port = await listener.listen();
    listener.answer = undefined;
    const impatient = client(port);
    impatient.ask('impatient');
    await until('it is asked', () => listener.open.length === 1);
    leave(impatient.socket);
    const patient = client(port);
    patient.ask('patient');
    await until('both are asked', () => listener.open.length === 2);
    grant('first');
    grant('second');
    await until('the client that waits has an answer', () => patient.received.includes('"rule":"second"'));
    expect(patient.statuses()).toEqual(['200']);
    expect(patient.received).not.toContain('"rule":"first"');
  });

  it('gets a connection close with its next answer, once the node is stopping', async () => {
    const port = await listener.listen();
    listener.answer = undefined;
    const [open, next] = [client(port), client(port)];
    open.ask('before');
    await until('it is asked', () => listener.open.length === 1);
    listener.readiness = { status: 'stopping' };
    grant('first');
    await until('its connection is closed', () => open.isClosed);
    next.ask('after');
    await until('the next one is asked', () => listener.open.length === 1);
    grant('second');
    await until('that connection is closed', () => next.isClosed);
    for (const { received } of [open, next]) {
      expect(received).toContain('HTTP/1.1 200');
      expect(received.toLowerCase()).toContain('connection: close');
    }
    const response = await listener.app.inject('/healthz');
    expect([response.statusCode, response.headers.connection]).toEqual([200, 'close']);
  });

  it('gets its answers in the order of its requests, for any order of the decisions', async () => {
    const port = await listener.listen();
    listener.answer = undefined;
    const [one, two] = [client(port), client(port)];
    one.ask('one');
    await until('one is asked', () => listener.open.length === 1);
    two.ask('two');
    await until('two is asked', () => listener.open.length === 2);
    listener.open.reverse();
    grant('for two');
    grant('for one');
    await until('both have answers', () => one.received.includes('}}') && two.received.includes('}}'));
    expect(one.received).toContain('"rule":"for one"');
    expect(two.received).toContain('"rule":"for two"');
  });
});
