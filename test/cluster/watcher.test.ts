/** Tests the output of the start script when nodes end and return. The node that reports on the cluster is a fake. */
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

/** Waits for a report. On a busy machine the script may get no answer within a second. */
async function peeked(): Promise<void> {
  await eventually('the script got a report', async () => {
    const startedMillis = performance.now();
    const before = reports;
    await watcher.check();
    return reports > before && performance.now() - startedMillis < ANSWER_MILLIS_MAX ? true : undefined;
  });
}

it('a report from before the end of a node does not count as its return', async () => {
  await peeked();
  expect(lines).toEqual([]);
});

it('a removed node is not asked who leads', async () => {
  // It no longer learns of leaders.
  const partition = { id: 0, leader: 0, term: 1, commit: 1, placed: true, replicas: [] };
  reported = { ...reported, self: { id: 1, membership: 'removed', refusedBy: [] }, partitions: [partition] };
  await peeked();
  expect(lines).toEqual([]);
});

it('a node that runs again as another process is reported once', async () => {
  await peeked();
  reported = reportWith({ pid: ENDED_PID, up: false });
  await peeked();
  reported = reportWith({ pid: ENDED_PID + 1, up: true });
  await peeked();
  await peeked();
  expect(lines).toEqual([`node 2 is up again (pid ${ENDED_PID + 1})`]);
});
