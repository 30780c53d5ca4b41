/** Tests what the start script prints when nodes end and come back. The node that reports on the cluster is a fake. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Watcher } from '../../cluster/watcher.ts';
import type { NodeProcess } from '../../cluster/processes.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { LOCAL_DEFAULTS, localConfig } from '../../src/config/cluster-directory.ts';
import { eventually } from './harness.ts';

const ENDED_PID = 4711;
/** How long the script waits for an answer. */
const ANSWER_MILLIS_MAX = 1_000;

let server: Server;
let watcher: Watcher;
let reported: ClusterReport;
let lines: string[];
/** Number of cluster reports sent. */
let reports: number;

function reportWith(node2: { readonly pid: number; readonly up: boolean }): ClusterReport {
  return {
    self: { id: 1, membership: 'member', refusedBy: [] },
    nodes: [{ id: 2, http: '127.0.0.1:1', clock: null, speaks: null, release: null, ...node2 }],
    version: 1,
    settledVersion: 1,
    rules: null,
    partitions: [],
  };
}

beforeEach(async () => {
  lines = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  reported = reportWith({ pid: ENDED_PID, up: true });
  reports = 0;
  server = createServer((request, response) => {
    const isReadiness = request.url === '/readyz';
    if (!isReadiness) reports += 1;
    response.end(JSON.stringify(isReadiness ? { status: 'ready' } : reported));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const config = localConfig(LOCAL_DEFAULTS);
  const nodes = config.nodes.slice(0, 1).map((node) => ({ ...node, http: { host: '127.0.0.1', port } }));
  watcher = new Watcher({
    config: { ...config, nodes },
    status: reported,
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

/** A second without an answer, on a busy machine, is no look. */
async function peeked(): Promise<void> {
  await eventually('it looked', async () => {
    const startedMillis = performance.now();
    const before = reports;
    await watcher.check();
    return reports > before && performance.now() - startedMillis < ANSWER_MILLIS_MAX ? true : undefined;
  });
}

it('a node that ended is not up again by a report from before its end', async () => {
  await peeked();
  expect(lines).toEqual([]);
});

it('who leads is not asked of a node that was removed', async () => {
  // Nobody tells it of leaders any more.
  const partition = { id: 0, leader: 0, term: 1, commit: 1, placed: true, replicas: [] };
  reported = { ...reported, self: { id: 1, membership: 'removed', refusedBy: [] }, partitions: [partition] };
  await peeked();
  expect(lines).toEqual([]);
});

it('is up again as another process, and that is said once', async () => {
  await peeked();
  reported = reportWith({ pid: ENDED_PID, up: false });
  await peeked();
  reported = reportWith({ pid: ENDED_PID + 1, up: true });
  await peeked();
  await peeked();
  expect(lines).toEqual([`node 2 is up again (pid ${ENDED_PID + 1})`]);
});
