/** Tests the HTTP transport over real sockets, above all whether it knows that a request was not sent. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Exchange, ExchangeResult } from '../../src/client/environment.ts';
import { HttpTransport } from '../../src/client/http-transport.ts';
import { issueAuthority, issueNodeCertificate } from '../../src/tls/issue.ts';
import { eventually, freePorts } from '../cluster/harness.ts';

const servers: Server[] = [];
const transports: HttpTransport[] = [];
const PLAIN = { token: undefined, tls: undefined, batchesPerNodeMax: 4 };

afterEach(async () => {
  for (const transport of transports.splice(0)) transport.close();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listening(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serve(listener: RequestListener): Promise<string> {
  return `http://${await listening(createServer(listener))}`;
}

async function exchange(
  origin: string,
  init: ConstructorParameters<typeof HttpTransport>[0] = PLAIN,
  changes: Partial<Exchange> = {},
): Promise<ExchangeResult> {
  const transport = new HttpTransport(init);
  transports.push(transport);
  const wanted = { origin, method: 'POST', path: '/v1/x', body: '{"ü":1}', timeoutMillis: 60_000 } as const;
  return new Promise((resolve) => transport.send({ ...wanted, ...changes }, resolve));
}

describe('an exchange', () => {
  it('sends body and token, and returns the answer', async () => {
    let seen = {};
    const origin = await serve((request, response) => {
      const { method, url, headers } = request;
      request.setEncoding('utf8').on('data', (body: string) => (seen = { method, url, body, headers }));
      request.on('end', () => response.writeHead(429).end('{"ä":2}'));
    });
    const result = await exchange(origin, { ...PLAIN, token: 'qt_1' });
    expect(result).toEqual({ kind: 'response', status: 429, body: '{"ä":2}' });
    const headers = {
      authorization: 'Bearer qt_1',
      'content-type': 'application/json',
      'content-length': '8',
    };
    expect(seen).toMatchObject({ method: 'POST', url: '/v1/x', body: '{"ü":1}', headers });
  });

  it('keeps its connection', async () => {
    const sockets = new Set<unknown>();
    const origin = await serve((request, response) => {
      sockets.add(request.socket);
      request.resume().on('end', () => response.end('{}'));
    });
    const transport = new HttpTransport(PLAIN);
    transports.push(transport);
    for (let i = 0; i < 3; i += 1) {
      await new Promise((resolve) =>
        transport.send({ origin, method: 'GET', path: '/', timeoutMillis: 60_000 }, resolve),
      );
    }
    expect(sockets.size).toBe(1);
  });

  it('was certainly not sent if no process listens', async () => {
    const [port] = await freePorts(1);
    expect(await exchange(`http://127.0.0.1:${port}`)).toMatchObject({ kind: 'failed', isSent: false });
  });

  it('may have been sent if the connection breaks', async () => {
    const origin = await serve((request) => request.socket.destroy());
    expect(await exchange(origin)).toMatchObject({ kind: 'failed', isSent: true });
  });

  it('may have been sent if a kept connection breaks', async () => {
    let requests = 0;
    const origin = await serve((request, response) => {
      requests += 1;
      if (requests === 1) request.resume().on('end', () => response.end('{}'));
      else request.socket.destroy();
    });
    const transport = new HttpTransport(PLAIN);
    transports.push(transport);
    const results: ExchangeResult[] = [];
    for (let i = 0; i < 2; i += 1) {
      const asked = { origin, method: 'POST', path: '/', body: '{}', timeoutMillis: 60_000 } as const;
      results.push(await new Promise((resolve) => transport.send(asked, resolve)));
    }
    expect(results).toMatchObject([{ kind: 'response' }, { kind: 'failed', isSent: true }]);
  });

  it('may have been sent if a connection breaks that another request used before', async () => {
    const seen: (string | undefined)[] = [];
    const origin = await serve((request, response) => {
      seen.push(request.url);
      if (seen.length <= 2) request.resume().on('end', () => response.end('{}'));
      else request.socket.destroy();
    });
    const transport = new HttpTransport({ ...PLAIN, batchesPerNodeMax: 1 });
    transports.push(transport);
    const results = await Promise.all(
      ['/1', '/2', '/3'].map(async (path) => {
        const asked = { origin, method: 'POST', path, body: '{}', timeoutMillis: 60_000 } as const;
        return new Promise((resolve) => transport.send(asked, resolve));
      }),
    );
    expect(seen).toHaveLength(3);
    expect(results[2]).toMatchObject({ kind: 'failed', isSent: true });
  });

  it('that waits for a connection is not sent when the transport is closed, and every exchange ends', async () => {
    const seen: (string | undefined)[] = [];
    const origin = await serve(({ url }, response) => {
      seen.push(url);
      if (url === '/last') response.end('{}');
    });
    const transport = new HttpTransport({ ...PLAIN, batchesPerNodeMax: 1 });
    const asked = { origin, method: 'POST', path: '/', body: '{}', timeoutMillis: 60_000 } as const;
    const results = Promise.all(
      [1, 2, 3].map(async () => new Promise((resolve) => transport.send(asked, resolve))),
    );
    await eventually('two requests have arrived', async () => (seen.length === 2 ? true : undefined));
    transport.close();
    expect(await results).toMatchObject([{ isSent: true }, { isSent: true }, { isSent: false }]);
    // Anything sent earlier would have arrived by then.
    expect(await exchange(origin, PLAIN, { path: '/last' })).toMatchObject({ kind: 'response' });
    expect(seen).toEqual(['/', '/', '/last']);
  });

  it('has no answer if the response breaks off', async () => {
    const origin = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"answers":', () => request.socket.destroy());
    });
    expect(await exchange(origin)).toMatchObject({ kind: 'failed', isSent: true });
  });

  it('ends after its timeout, and may have been sent', async () => {
    const origin = await serve(() => {});
    const result = await eventually('the exchange has a connection before its timeout', async () => {
      const reported = await exchange(origin, PLAIN, { timeoutMillis: 50 });
      // A process that was paused for that long has sent nothing, and reports so.
      return reported.kind === 'failed' && !reported.isSent ? undefined : reported;
    });
    expect(result).toMatchObject({ kind: 'failed', isSent: true });
  });

  it('refuses an endless response', async () => {
    const origin = await serve((_, response) => {
      const chunk = Buffer.alloc(1 << 20);
      const more = (): void => {
        if (!response.destroyed) response.write(chunk, more);
      };
      response.on('error', () => {});
      more();
    });
    expect(await exchange(origin)).toMatchObject({ kind: 'failed', isSent: true });
  });
});

async function secure(): Promise<{ origin: string; ca: string }> {
  const nowMillis = Date.now();
  const ca = await issueAuthority('test', nowMillis);
  const name = { clusterId: 'test', nodeId: 1 };
  const node = await issueNodeCertificate({ ...name, ca, hosts: ['127.0.0.1'], days: 1, nowMillis });
  const server = createTlsServer({ key: node.key, cert: node.cert }, (_, response) => response.end('{}'));
  return { origin: `https://${await listening(server)}`, ca: ca.cert };
}

describe('over TLS', () => {
  it('an exchange succeeds with a server whose certificate the CA signed', async () => {
    const { origin, ca } = await secure();
    expect(await exchange(origin, { ...PLAIN, tls: { ca } })).toMatchObject({
      kind: 'response',
      status: 200,
    });
  });

  it('nothing is sent with options that cannot be used', async () => {
    const { origin, ca } = await secure();
    expect(await exchange(origin, { ...PLAIN, tls: { cert: ca, key: ca } })).toMatchObject({
      kind: 'failed',
      isSent: false,
    });
  });

  it('nothing is sent to a server whose certificate no CA signed', async () => {
    const { origin } = await secure();
    const token = 'qt_secret';
    expect(await exchange(origin, { ...PLAIN, token })).toMatchObject({ kind: 'failed', isSent: false });
    const { ca } = await secure();
    expect(await exchange(origin, { ...PLAIN, tls: { ca } })).toMatchObject({
      kind: 'failed',
      isSent: false,
    });
  });
});
