/** Tests that a node that still loads its groups answers its status and refuses requests. */
import { afterEach, describe, expect, it } from 'vitest';
import type { LogStore } from '../../raft/driver/store.ts';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const RULE = { id: 'default', limit: 10, windowMillis: 60_000, clock: 'cluster' } as const;
const PARTITIONS = 4;

/** A store that reads groups only when the test allows it. */
function slowStore(): { wrap: (store: LogStore) => LogStore; next: () => void; waiting: () => boolean } {
  let release: (() => void) | undefined;
  const wrap = (store: LogStore): LogStore => ({
    async load(group) {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return store.load(group);
    },
    write: (writes, done) => store.write(writes, done),
    get hasGarbage() {
      return store.hasGarbage;
    },
    readSnapshotChunk: (group, index, chunk) => store.readSnapshotChunk(group, index, chunk),
    close: () => store.close(),
  });
  return {
    wrap,
    waiting: () => release !== undefined,
    next() {
      release?.();
      release = undefined;
    },
  };
}

async function get(port: number, path: string): Promise<[number, unknown]> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return [response.status, await response.json()];
}

describe('a node that loads its groups', () => {
  let cluster: InProcessCluster | undefined;
  afterEach(async () => cluster?.stop());

  it('answers meanwhile, reports its progress, and decides nothing', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS, nodes: 1 });
    const port = cluster.config.nodes[0]?.http.port ?? 0;
    const { wrap, next, waiting } = slowStore();
    const started = cluster.startNode(1, wrap);
    const turn = async (): Promise<void> => {
      while (!waiting()) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const groups = 1 + PARTITIONS;
    for (let loaded = 0; loaded < groups; loaded += 1) {
      await turn();
      expect(await get(port, '/readyz')).toEqual([503, { status: 'starting', loaded, of: groups }]);
      next();
    }
    await started;
    await eventually('it is ready', async () => {
      const [status] = await get(port, '/readyz');
      return status === 200 ? true : undefined;
    });
  });

  it('refuses requests without asking another node', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS, nodes: 1 });
    const port = cluster.config.nodes[0]?.http.port ?? 0;
    const { wrap, next, waiting } = slowStore();
    const started = cluster.startNode(1, wrap);
    while (!waiting()) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await get(port, '/healthz')).toEqual([200, { status: 'ok' }]);
    expect((await get(port, '/v1/cluster'))[0]).toBe(503);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
    const response = await fetch(`http://127.0.0.1:${port}/v1/allow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"userId":"ada"}',
    });
    expect([response.status, await response.json()]).toMatchObject([
      503,
      { allowed: false, reason: 'starting', proposed: false },
    ]);
    const timer = setInterval(next, 1);
    await started;
    clearInterval(timer);
  });
});
