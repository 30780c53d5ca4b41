/** Tests that no command calls a change refused that the cluster has accepted, if a certificate hides its progress. */
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { drainNode } from '../../src/cli/drain-command.ts';
import { explain } from '../../src/cli/explain-error.ts';
import { trustOnly } from '../../src/cli/node-fetch.ts';
import { changeNodes } from '../../src/cli/nodes-command.ts';
import { WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { Authority } from '../tls/authority.ts';

const DAY = 86_400_000;
let authority: Authority;
const servers: Server[] = [];
/** Node 1 has accepted a change of the nodes, and answers nothing more. */
let isSilent = false;

/** Opens a listener that accepts every change and reports a cluster whose node 3 has the given address. */
async function opened(nodeId: number, agoMillis: number, http: () => string): Promise<string> {
  const { cert, key } = await authority.issue({ clusterId: 'c', nodeId, agoMillis, days: 2 });
  const files = { cert: await readFile(cert), key: await readFile(key) };
  const server = createServer(files, (request, response) => {
    const nodes = [
      { id: 3, http: http(), resp: null, pid: 1, up: true, clock: null, speaks: 1, release: '1.0.0' },
    ];
    const self = { id: 1, membership: 'member', refusedBy: [] };
    const report = { self, nodes, version: 1, settledVersion: 1, rules: null, partitions: [] };
    if (isSilent) response.writeHead(500).end('{}');
    else response.end(JSON.stringify(request.url === '/v1/cluster' ? report : { version: 2 }));
    isSilent ||= request.method === 'POST';
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

it('a change whose progress cannot be seen is accepted and unfinished, and the command does not wait', async () => {
  const expired = await opened(3, 9 * DAY, () => '');
  const node = await opened(1, 0, () => expired);
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  const wanted = {
    node: `https://${node}`,
    id: 3,
    isDraining: false,
    wait: true,
    timeoutMillis: WAIT_MILLIS_MAX,
  };
  expect(await drainNode({ ...wanted, print })).toBe('pending');
  expect(lines[0]).toContain('has accepted: node 3 will take requests again');
  expect(lines.at(-1)).toMatch(
    /^accepted; cannot see whether node 3 is done: .*is not trusted \(CERT_HAS_EXPIRED\)/,
  );
});

it('a change of the nodes goes on past a node with an expired certificate, and ends with 75', async () => {
  const expired = await opened(3, 9 * DAY, () => '');
  const node = `https://${await opened(1, 0, () => expired)}`;
  const change = { node, change: { remove: 3 }, timeoutMillis: 3_000, print: () => {} };
  const error: unknown = await changeNodes(change).catch((cause: unknown) => cause);
  expect(isSilent).toBe(true);
  expect(explain(error).exitCode).toBe(75);
});
