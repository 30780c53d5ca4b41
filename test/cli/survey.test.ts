/** Tests the report on a cluster in which one node has an untrusted certificate. */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { atNode } from '../../src/cli/asked-cluster.ts';
import { trustOnly } from '../../src/cli/node-fetch.ts';
import { survey } from '../../src/cli/survey.ts';
import { WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { Authority, type IssuedFor } from '../tls/authority.ts';

const DAYS = 3 * 86_400_000;
let authority: Authority;
const servers: Server[] = [];

/** Opens a listener that is ready and answers with the given cluster report. */
async function opened(issued: Omit<IssuedFor, 'clusterId'>, report: () => unknown): Promise<string> {
  const { cert, key } = await authority.issue({ clusterId: 'c', ...issued });
  const files = { cert: await readFile(cert), key: await readFile(key) };
  const server = createServer(files, (request, response) => {
    response.end(JSON.stringify(request.url === '/v1/cluster' ? report() : { status: 'ready' }));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  authority = await Authority.make('c');
  trustOnly({ ca: [await readFile(authority.caFile, 'utf8')] });
});
afterAll(async () => {
  for (const server of servers) server.close();
  await authority.remove();
});

it('a node with an untrusted certificate is reported by the others, with the reason why it was not asked', async () => {
  const addresses: string[] = [];
  const report = (): unknown => ({
    self: { id: 1, membership: 'member', refusedBy: [] },
    nodes: addresses.map((http, i) => ({
      id: i + 1,
      http,
      resp: null,
      pid: 1,
      up: true,
      clock: null,
      speaks: 1,
      release: '0.1.0',
    })),
    version: 1,
    settledVersion: 1,
    rules: null,
    partitions: [],
  });
  addresses.push(await opened({ nodeId: 1 }, report));
  addresses.push(await opened({ nodeId: 2, agoMillis: DAYS, days: 1 }, report));
  const reported = async (): Promise<unknown> => {
    const { nodes } = await survey(atNode(`https://${addresses[0]}`));
    return nodes.map(({ readiness, problem }) => [readiness?.['status'], problem]);
  };
  // The command waits two seconds, too short for TLS handshakes on a busy machine.
  const patience = { timeout: WAIT_MILLIS_MAX };
  await expect.poll(reported, patience).toEqual([
    ['ready', undefined],
    [undefined, expect.stringContaining('is not trusted (CERT_HAS_EXPIRED)')],
  ]);
  const refusal = async (): Promise<unknown> =>
    survey(atNode(`https://${addresses[1]}`)).catch((error: unknown) => error);
  await expect.poll(refusal, patience).toMatchObject({
    outcome: 'refused',
    message: expect.stringContaining('CERT_HAS_EXPIRED'),
  });
});
