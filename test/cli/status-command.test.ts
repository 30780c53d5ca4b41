/** Tests that `quorate status` does not explain where leaders are while there are none. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { atNode } from '../../src/cli/asked-cluster.ts';
import { unreadableAction } from '../../src/cli/doctor-node.ts';
import { showStatus } from '../../src/cli/status-command.ts';

const NODE = { id: 1, resp: null, pid: 1, up: true, clock: 'fit', speaks: 1, release: '1.0.0' };
let leader = 0;
const server = createServer((request, response) => {
  const http = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const report = {
    self: { id: 1, membership: 'member', refusedBy: [] },
    nodes: [{ ...NODE, http }],
    version: 1,
    settledVersion: 1,
    gatheredOn: 0,
    rules: null,
    partitions: [{ id: 0, leader, term: 1, commit: 1, placed: true, replicas: [] }],
  };
  response.end(JSON.stringify(request.url === '/v1/cluster' ? report : { status: 'waiting for leaders' }));
});
beforeAll(async () => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => void server.close());

async function leadersLine(): Promise<string | undefined> {
  const lines: string[] = [];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await showStatus({ cluster: atNode(url), print: (line) => void lines.push(line) });
  return lines.find((line) => line.startsWith('leaders: '));
}

it('says that there are none; with one it says why leaders are spread', async () => {
  expect(await leadersLine()).toMatch(/^leaders: none, because no partition has a majority/);
  leader = 1;
  expect(await leadersLine()).toMatch(/^leaders: spread over the nodes/);
});

it('doctor advises a certificate, not a token, if the certificate is not for the address', () => {
  expect(unreadableAction('https://h:1 has a certificate that is not for h: use another')).toMatch(
    /--hostname/,
  );
  expect(unreadableAction('status 403')).toMatch(/token of role read/);
});
