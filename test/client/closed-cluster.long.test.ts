/**
 * Tests a client of a cluster with TLS and tokens. With the CA and a token of role `decide` it sends straight to
 * leaders.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeFetch } from '../../src/cli/node-fetch.ts';
import { QuorateClient } from '../../src/client/client.ts';
import type { ClientEvent } from '../../src/client/events.ts';
import type { ClientOptions } from '../../src/client/options.ts';
import { eventually, TestCluster, WAIT_MILLIS_MAX } from '../cluster/harness.ts';

let cluster: TestCluster;
let nodes: string[];
const clients: QuorateClient[] = [];

beforeAll(async () => {
  cluster = await TestCluster.start({
    tls: true,
    partitions: 4,
    rules: [{ id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' }],
  });
  nodes = cluster.ids.map((id) => `https://127.0.0.1:${cluster.port(id)}`);
});
afterAll(async () => {
  for (const client of clients) client.close();
  await cluster.stop();
});

async function tokenOf(role: string, shown?: string): Promise<string> {
  return eventually(`a token of role ${role}`, async () => {
    const response = await nodeFetch(new URL('/v1/tokens', nodes[0]), {
      signal: AbortSignal.timeout(WAIT_MILLIS_MAX),
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(shown !== undefined && { authorization: `Bearer ${shown}` }),
      },
      body: JSON.stringify({ role, name: role }),
    });
    const { token } = (await response.json()) as { token?: string };
    return token;
  });
}

function clientOf(options: Partial<ClientOptions>): QuorateClient {
  const client = new QuorateClient({ nodes, ...options });
  clients.push(client);
  return client;
}

describe('a cluster with TLS and tokens', () => {
  it('answers a client with its CA and a token of role decide, which sends straight to leaders, and no client without them', async () => {
    const admin = await tokenOf('admin');
    const token = await tokenOf('decide', admin);
    const tls = { ca: readFileSync(join(cluster.directory, 'certs', 'ca.crt'), 'utf8') };
    const events: ClientEvent[] = [];
    const client = clientOf({ tls, token, onEvent: (event) => events.push(event) });
    await eventually('requests go straight to leaders', async () => {
      expect((await client.allow({ userId: 'ada', rule: '1000000/60000ms' })).allowed).toBe(true);
      return events.some((event) => event.type === 'sent' && event.straight > 0) ? true : undefined;
    });
    await expect(clientOf({ tls }).allow({ userId: 'ada' })).rejects.toMatchObject({
      code: 'REFUSED',
      status: 401,
    });
    const reader = clientOf({ tls, token: await tokenOf('read', admin) });
    await expect(reader.allow({ userId: 'ada' })).rejects.toMatchObject({ code: 'REFUSED', status: 403 });
    const stranger = clientOf({ token, deadlineMillis: 1_000 });
    await expect(stranger.allow({ userId: 'ada' })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      isDefinite: true,
    });
  });
});
