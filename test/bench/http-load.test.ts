/** Tests the HTTP loads of the bench, closed and open, with a fake server. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { BATCH_PATH, httpLoad } from '../../bench/load/http-load.ts';
import { Latencies } from '../../bench/load/latencies.ts';
import { openLoop } from '../../bench/load/open-loop.ts';
import { measuredSomething } from './measured.ts';

const servers: Server[] = [];

async function started(
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<{ readonly host: string; readonly port: number }> {
  const server = createServer((request, response) => {
    // The client may be gone after the measurement.
    answer(request, response).catch(() => response.destroy());
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const JOB = { workload: 'mixed', seed: 1, connections: 4, warmUpMillis: 10, measuredMillis: 200 } as const;
const STATUS: Readonly<Record<string, number>> = { open: 200, spent: 429 };

/** Answers a plain request by its rule, and a batch with the numbers of grants and denials. */
async function decide(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = JSON.parse(await text(request));
  if (request.url === BATCH_PATH) {
    const { requests } = body as { readonly requests: readonly { readonly rule: string }[] };
    const results = requests.map(({ rule }) => ({ allowed: rule === 'open' }));
    response.end(JSON.stringify({ results }));
    return;
  }
  response.statusCode = STATUS[(body as { readonly rule: string }).rule] ?? 500;
  response.end('{}');
}

/** A node that cannot decide. */
async function refuse(_request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.statusCode = 503;
  response.end();
}

describe('load over HTTP', () => {
  test('counts 200 as a grant and 429 as a denial', async () => {
    const addresses = [await started(decide), await started(decide)];
    const job = { ...JOB, kind: 'http', batch: 1, addresses } as const;
    const { grants, denials, errors, latencies } = await measuredSomething(() =>
      httpLoad(job, () => undefined),
    );
    expect(grants).toBeGreaterThan(0);
    expect(denials).toBeGreaterThan(0);
    expect(errors).toBe(0);
    expect(Latencies.decode(latencies).count).toBe(grants + denials);
  });

  test('counts each request of a batch', async () => {
    const addresses = [await started(decide)];
    const job = { ...JOB, kind: 'http', batch: 10, addresses } as const;
    const { grants, denials, errors, latencies } = await measuredSomething(() =>
      httpLoad(job, () => undefined),
    );
    expect(grants + denials).toBe(10 * Latencies.decode(latencies).count);
    expect(Math.min(grants, denials)).toBeGreaterThan(0);
    expect(errors).toBe(0);
  });

  test('counts everything else as an error', async () => {
    const addresses = [await started(refuse)];
    const job = { ...JOB, kind: 'http', batch: 1, addresses } as const;
    const { grants, denials, errors } = await measuredSomething(() => httpLoad(job, () => undefined));
    expect([grants, denials]).toEqual([0, 0]);
    expect(errors).toBeGreaterThan(0);
  });
});

describe('load at a fixed rate', () => {
  const OPEN = { ...JOB, kind: 'open-loop', requestsPerSecond: 500 } as const;

  test('uses all nodes, and counts like any other load', async () => {
    const asked = [0, 0];
    const counting = async (node: number) =>
      started(async (request, response) => {
        asked[node] = (asked[node] ?? 0) + 1;
        await decide(request, response);
      });
    const addresses = [await counting(0), await counting(1)];
    const { errors } = await measuredSomething(() => openLoop({ ...OPEN, addresses }, () => undefined));
    expect(errors).toBe(0);
    expect(Math.min(...asked)).toBeGreaterThan(0);
  });

  test('adds a stall to the latency of all requests that were due meanwhile', async () => {
    const stallMillis = 300;
    const connections = new Set<unknown>();
    const addresses = [
      await started(async (request, response) => {
        // The first request of each measurement, which opens a new connection.
        const wait = connections.has(request.socket) ? 0 : stallMillis;
        connections.add(request.socket);
        await new Promise((resolve) => setTimeout(resolve, wait));
        await decide(request, response);
      }),
    ];
    const job = { ...OPEN, addresses, connections: 1, warmUpMillis: 0, measuredMillis: 400 };
    const { latencies } = await measuredSomething(() => openLoop(job, () => undefined));
    // One answer was late. If later requests had not been sent meanwhile, only this one would be slow.
    expect(Latencies.decode(latencies).percentileMillis(50)).toBeGreaterThan(stallMillis / 10);
  });
});
