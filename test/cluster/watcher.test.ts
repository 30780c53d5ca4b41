/** What the start script says of nodes that end and come back. The node that tells of the cluster is played. */
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Watcher } from '../../cluster/watcher.ts';
import type { NodeProcess } from '../../cluster/processes.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';

const ENDED_PID = 4711;

let server: Server;
let watcher: Watcher;
let told: ClusterReport;
let lines: string[];

function reportWith(node2: { readonly pid: number; readonly up: boolean }): ClusterReport {
  return {
    self: { id: 1, standing: 'member', refusedBy: [] },
    nodes: [{ id: 2, http: '127.0.0.1:1', clock: null, ...node2 }],
    version: 1,
    settledVersion: 1,
    rules: null,
    partitions: [],
  };
}

beforeEach(async () => {
  lines = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  told = reportWith({ pid: ENDED_PID, up: true });
  server = createServer((request, response) =>
    response.end(JSON.stringify(request.url === '/readyz' ? { status: 'ready' } : told)),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const config = localConfig({ ...LOCAL_DEFAULTS, nodes: 3, basePort: port - 1 });
  watcher = new Watcher({
    config: { ...config, nodes: config.nodes.slice(0, 1) },
    status: told,
    data: './data',
    exclude: () => {},
  });
  const node = { id: 2, child: { pid: ENDED_PID }, logPath: 'node-2.log', lastWords: () => undefined };
  watcher.nodeEnded(node as unknown as NodeProcess, { code: null, signal: 'SIGKILL' });
  lines = [];
});
afterEach(async () => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it('a node that ended is not up again by a report from before its end', async () => {
  await watcher.look();
  expect(lines).toEqual([]);
});

it('is up again as another process, and that is said once', async () => {
  await watcher.look();
  told = reportWith({ pid: ENDED_PID, up: false });
  await watcher.look();
  told = reportWith({ pid: ENDED_PID + 1, up: true });
  await watcher.look();
  await watcher.look();
  expect(lines).toEqual([`node 2 is up again (pid ${ENDED_PID + 1})`]);
});
