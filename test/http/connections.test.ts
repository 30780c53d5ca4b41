/** HTTP connections: input that is not HTTP, clients without a request, and slow clients. */
import { HTTP_LIMITS } from '../../src/http/http-listener-init.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../transport/wait.ts';
import { decisionOf } from '../api/decision-of.ts';
import { Listener, PARTITION, denialOf } from './fixtures.ts';
import { RawClient } from './raw-client.ts';
import { BusyWatch } from '../slowness.ts';

const REQUEST_MILLIS = 400;
/** The delay that the check interval and this machine may add. */
const SLACK_MILLIS = 600;
const TRIES = 4;

let listener = new Listener();
const clients: RawClient[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.destroy();
  await listener.app.close();
  listener = new Listener();
});

async function connect(): Promise<RawClient> {
  const client = new RawClient(await listener.listen());
  clients.push(client);
  return client;
}

/** Everything a connection received before the server closed it. */
async function lastWords(client: RawClient): Promise<{ status: string | undefined; body: unknown }> {
  await until('the connection is closed', () => client.isClosed);
  const [status] = client.statuses();
  const body = client.received.slice(client.received.indexOf('\r\n\r\n') + 4);
  return { status, body: body === '' ? undefined : JSON.parse(body) };
}

/** Writes a byte now and then, so that the connection is never idle. */
function drip(client: RawClient): void {
  const timer = setInterval(() => client.socket.write('x'), 30);
  client.socket.once('close', () => clearInterval(timer));
}

describe('bytes that are no HTTP are refused, and never granted', () => {
  it('bytes of another protocol', async () => {
    const client = await connect();
    client.socket.write('\u0000\u0001 not http\r\n\r\n');
    const { status, body } = await lastWords(client);
    expect(status).toBe('400');
    expect(body).toMatchObject({ allowed: false, error: { type: 'invalid_request', field: 'request' } });
    expect((await listener.post({ userId: 'ada' })).status).toBe(200);
  });

  it('headers that are too long', async () => {
    const client = await connect();
    client.socket.write(`POST /v1/allow HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`);
    const { status, body } = await lastWords(client);
    expect(status).toBe('431');
    expect(body).toMatchObject({ allowed: false, error: { field: 'headers' } });
  });

  it.each([
    ['no host', '', '400', 'host'],
    ['an expectation that no server can meet', 'host: a\r\nexpect: miracles\r\n', '417', 'expect'],
  ])('a request with %s', async (_what, headers, status, field) => {
    const client = await connect();
    client.socket.write(`POST /v1/allow HTTP/1.1\r\n${headers}content-length: 0\r\n\r\n`);
    await until('it is answered', () => client.received.includes('}}'));
    expect(client.statuses()).toEqual([status]);
    expect(client.received).toContain('"allowed":false');
    expect(client.received).toContain(`"field":"${field}"`);
    expect(listener.asked).toEqual([]);
  });

  it('behind a waiting request, which the refusal does not answer', async () => {
    const client = await connect();
    listener.answer = undefined;
    client.ask('ada');
    await until('it is asked', () => listener.open.length === 1);
    client.socket.write('\u0000 not http\r\n\r\n');
    await until('the connection is closed', () => client.isClosed);
    listener.open[0]?.({ kind: 'decision', decision: decisionOf() }, PARTITION);
    expect(client.received).toBe('');
  });

  it('behind a waiting request, and a decided one whose answer must wait for it', async () => {
    const client = await connect();
    listener.answer = undefined;
    client.ask('ada');
    client.ask('bob');
    await until('both are asked', () => listener.open.length === 2);
    listener.open[1]?.({ kind: 'decision', decision: denialOf() }, PARTITION);
    client.socket.write('\u0000 not http\r\n\r\n');
    await until('the connection is closed', () => client.isClosed);
    expect(client.received).toBe('');
  });

  it('in the same segment as a complete request, which may be granted', async () => {
    const client = await connect();
    client.socket.cork();
    client.ask('ada');
    client.socket.write('\u0000 not http\r\n\r\n');
    client.socket.uncork();
    await until('the connection is closed', () => client.isClosed);
    expect(client.received).toBe('');
  });

  it('behind an answer, which stays valid', async () => {
    const client = await connect();
    client.ask('ada');
    await until('it is answered', () => client.statuses().length === 1);
    client.socket.write('\u0000 not http\r\n\r\n');
    await until('the connection is closed', () => client.isClosed);
    expect(client.statuses()).toEqual(['200', '400']);
  });
});

async function slowListener(): Promise<RawClient> {
  await listener.app.close();
  listener = new Listener({ ...HTTP_LIMITS, requestMillis: REQUEST_MILLIS });
  return connect();
}

describe('a client that sends no more requests', () => {
  it.each([
    ['75 s, longer than the 60 s of usual balancers', undefined, 75_000],
    ['the time in http.keepAliveMillis', 610_000, 610_000],
  ])('keeps its connection for %s', async (_for, keepAliveMillis, expected) => {
    await listener.app.close();
    const settings = keepAliveMillis === undefined ? {} : { keepAliveMillis };
    listener = new Listener(HTTP_LIMITS, { rateLimitHeaders: [], ...settings });
    expect(listener.app.server.keepAliveTimeout).toBe(expected);
  });
});

describe('a slow client', () => {
  it.each([
    ['half of its headers and no more', 'POST /v1/allow HTTP/1.1\r\nhost: a\r\n', false],
    ['headers that come byte by byte', 'POST /v1/allow HTTP/1.1\r\nhost: a\r\nx: ', true],
    [
      'a body that comes byte by byte',
      'POST /v1/allow HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n',
      true,
    ],
    [
      'half of its body and no more',
      'POST /v1/allow HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 40\r\n\r\n{',
      false,
    ],
  ])('loses its connection at the time limit: %s', async (_what, bytes, drips) => {
    let client = await slowListener();
    for (let tries = 1; ; tries += 1) {
      const busy = new BusyWatch();
      const startedAt = performance.now();
      client.socket.write(bytes);
      if (drips) drip(client);
      await until('it is answered', () => client.statuses().length > 0);
      const took = performance.now() - startedAt;
      const longest = REQUEST_MILLIS + SLACK_MILLIS * busy.slowness();
      expect(took).toBeGreaterThanOrEqual(REQUEST_MILLIS - 50);
      const { status, body } = await lastWords(client);
      expect(status).toBe('408');
      expect(body).toMatchObject({ allowed: false, error: { field: 'request' } });
      expect(listener.asked).toEqual([]);
      if (took < longest) break;
      // The machine may have stalled: that is no fault of the listener.
      expect(tries).toBeLessThan(TRIES);
      client = await slowListener();
    }
  });

  it('is not slow between its requests', async () => {
    let client = await slowListener();
    for (let tries = 1; ; tries += 1) {
      client.ask('ada');
      await until('it has an answer', () => client.statuses().length === 1);
      // A listener that stalled before it read the bytes would count them as late.
      if (client.statuses()[0] !== '408') break;
      expect(tries).toBeLessThan(TRIES);
      client = await slowListener();
    }
    await new Promise((resolve) => setTimeout(resolve, 2 * REQUEST_MILLIS));
    client.ask('ada');
    await until('it has another', () => client.statuses().length === 2);
    expect(client.statuses()).toEqual(['200', '200']);
  });
});
