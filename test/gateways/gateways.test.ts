/** Tests the samples of cluster/gateways in their gateways: exactly the granted requests pass. */
import { createServer, request as httpRequest, type IncomingHttpHeaders, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, freePorts } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { type Gateway, programOf, startCaddy, startNginx, stopGateway } from './gateway.ts';

const LIMIT = 3;

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

describe.each([
  { name: 'nginx', variable: 'NGINX', start: startNginx, unreached: [500], reported: ['2', '1', '0'] },
  {
    name: 'caddy',
    variable: 'CADDY',
    start: startCaddy,
    unreached: [502, 503],
    reported: [undefined, undefined, undefined],
  },
])('$name', ({ name, variable, start, unreached, reported }) => {
  const program = programOf(name, variable);
  if (program === undefined) console.log(`skipped: there is no ${name} here, nor its path in ${variable}`);

  let cluster: InProcessCluster;
  let gateway: Gateway;
  let application: Server;
  let port: number;
  /** Requests that reached the application, in order. */
  const passed: string[] = [];

  beforeAll(async () => {
    if (program === undefined) return;
    cluster = await InProcessCluster.create({
      rules: [{ id: 'default', limit: LIMIT, windowMillis: 600_000, clock: 'cluster' }],
      nodes: 1,
      partitions: 1,
      http: { rateLimitHeaders: ['draft'], userHeader: 'x-user-id', trustedProxies: ['127.0.0.1'] },
      timing: { requestDeadlineMillis: 10_000 },
    });
    await cluster.startAll();
    application = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        passed.push(`${request.method} ${request.url} ${body}`);
        response.end('served');
      });
    });
    const [listen = 0, behind = 0] = await freePorts(2);
    await new Promise<void>((resolve) => void application.listen(behind, '127.0.0.1', resolve));
    port = listen;
    const quorate = cluster.config.nodes[0]?.http.port ?? 0;
    gateway = await start(program, join(cluster.directory, name), {
      listen,
      quorate: [quorate],
      application: behind,
    });
    await eventually('the gateway answers', async () => {
      if (gateway.child.exitCode !== null) throw new Error(`${name} ended: ${gateway.said()}`);
      return ask('127.0.0.99').catch(() => undefined);
    });
    passed.length = 0;
  });

  afterAll(async () => {
    if (program === undefined) return;
    await stopGateway(gateway);
    await new Promise((resolve) => application.close(resolve));
    await cluster.stop();
  });

  /** @param from the address that the client connects from */
  async function ask(
    from: string,
    { method = 'GET', path = '/', body, headers = {} }: Sent = {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const asked = httpRequest(
        { host: '127.0.0.1', port, localAddress: from, method, path, headers, agent: false },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part: string) => (text += part));
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          );
        },
      );
      asked.on('error', reject);
      asked.end(body);
    });
  }

  it.skipIf(program === undefined)(
    'passes granted requests, and answers denied ones with the reason',
    async () => {
      const limits: unknown[] = [];
      for (let i = 0; i < LIMIT; i += 1) {
        const { status, headers, body } = await ask('127.0.0.5', {
          method: 'POST',
          path: '/a?b=c',
          body: 'hello',
        });
        expect([status, body]).toEqual([200, 'served']);
        limits.push(headers['ratelimit']);
      }
      expect(limits.map((limit) => /r=(\d)/.exec(String(limit))?.[1])).toEqual(reported);
      const denied = await ask('127.0.0.5');
      expect([denied.status, Number(denied.headers['retry-after']) > 0]).toEqual([429, true]);
      expect(denied.headers['ratelimit']).toContain('r=0');
      expect(passed).toEqual(Array(LIMIT).fill('POST /a?b=c hello'));
      expect((await ask('127.0.0.6')).status).toBe(200);
    },
  );

  it.skipIf(program === undefined)('trusts no header of its client about its identity', async () => {
    passed.length = 0;
    const statuses: number[] = [];
    for (let i = 0; i <= LIMIT; i += 1) {
      const headers = {
        'x-forwarded-for': `203.0.113.${i}`,
        'x-real-ip': `203.0.113.${i}`,
        forwarded: `for=203.0.113.${i}`,
        'x-user-id': `mallory-${i}`,
        'x-quorate-token': 'x',
        'x-request-id': 'same',
      };
      statuses.push((await ask('127.0.0.7', { headers })).status);
    }
    expect(statuses).toEqual([...Array<number>(LIMIT).fill(200), 429]);
    expect(passed).toHaveLength(LIMIT);
  });

  it.skipIf(program === undefined)('answers a blocked client that waiting does not help', async () => {
    const quorate = `http://127.0.0.1:${cluster.config.nodes[0]?.http.port}`;
    const url = `${quorate}/v1/users/${encodeURIComponent('ip=127.0.0.8')}/block`;
    expect((await fetch(url, { method: 'PUT' })).status).toBe(200);
    const { status, headers } = await ask('127.0.0.8');
    expect([status, headers['retry-after']]).toEqual([403, undefined]);
  });

  it.skipIf(program === undefined)('passes no request while Quorate is unreachable', async () => {
    passed.length = 0;
    await cluster.stopNode(1);
    expect(unreached).toContain((await ask('127.0.0.9')).status);
    expect(passed).toEqual([]);
  });
});
