/** Tests a cluster in one process while one node is drained: leaders, answers of its listeners, and restarts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drainNode } from '../../src/cli/drain-command.ts';
import { eventually, WAIT_MILLIS_MAX } from '../cluster/harness.ts';
import { InProcessCluster } from '../cluster/in-process.ts';
import { RespClient } from '../resp/fixtures.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 600_000, clock: 'cluster' } as const;
const PARTITIONS = 8;

let cluster: InProcessCluster;
beforeAll(async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS, resp: true });
  await cluster.startAll();
});
afterAll(async () => cluster.stop());

function urlOf(id: number): string {
  const { http } = cluster.config.nodes.find((node) => node.id === id) ?? {};
  return `http://127.0.0.1:${http?.port ?? 0}`;
}

async function drain(id: number, isDraining: boolean, asked = 1): Promise<unknown> {
  const lines: string[] = [];
  const print = (line: string): void => void lines.push(line);
  // In a healthy cluster it takes a tenth of a second.
  const timeoutMillis = WAIT_MILLIS_MAX;
  await drainNode({ node: urlOf(asked), id, isDraining, wait: true, timeoutMillis, json: true, print });
  return JSON.parse(lines.join(''));
}

async function ask(id: number, userId: string): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(`${urlOf(id)}/v1/allow`, { method: 'POST', headers, body: JSON.stringify({ userId }) });
}

async function readiness(id: number): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${urlOf(id)}/readyz`);
  return { status: response.status, body: await response.json() };
}

/** The leader of each partition, as node `id` knows it. */
function leaders(id: number): number[] {
  return [...cluster.node(id).core.partitions.values()].map(({ leader }) => leader);
}

describe('a node that is drained', () => {
  it('hands over its leaderships, and its listeners accept no requests', async () => {
    await eventually('node 2 leads something', () => (leaders(1).includes(2) ? true : undefined));
    expect(await drain(2, true)).toEqual({ node: 2, draining: true, leads: 0, done: true });
    // Other nodes may learn of the new leaders before node 1 does.
    await eventually('node 1 follows others', () => (leaders(1).includes(2) ? undefined : true));
    const response = await ask(2, 'ada');
    expect([response.status, await response.json()]).toMatchObject([
      503,
      { reason: 'draining', proposed: false, allowed: false },
    ]);
    expect([response.headers.get('retry-after'), response.headers.get('connection')]).toEqual(['1', 'close']);
    // After a stall of a second it may be elected after all, and hands over again.
    await expect
      .poll(async () => readiness(2), { timeout: WAIT_MILLIS_MAX })
      .toMatchObject({ status: 503, body: { status: 'draining', leads: 0 } });
    // No alert may be raised by a drain, which an operator wanted.
    const metrics = await (await fetch(`${urlOf(2)}/metrics`)).text();
    expect(metrics).toContain('quorate_availability_ratio 1\n');
    expect(metrics).toContain('quorate_draining 1\n');
    const resp = new RespClient(cluster.config.nodes[1]?.resp?.port ?? 0);
    resp.send('ALLOW', 'ada');
    await eventually('its connection is closed', () => (resp.hasEnded ? true : undefined));
    expect(resp.received.toString()).toMatch(/^-\w+ .*being drained/);
    resp.socket.destroy();
  });

  it('is shown in the cluster report and still votes, and the others answer all users', async () => {
    for (const id of [1, 3]) {
      const nodes = async (): Promise<{ id: number }[]> => {
        const response = await fetch(`${urlOf(id)}/v1/cluster`);
        return ((await response.json()) as { nodes: { id: number }[] }).nodes;
      };
      // Node 3 may hear of it later than node 1, which got the request.
      await expect
        .poll(nodes, { timeout: WAIT_MILLIS_MAX })
        .toMatchObject([{ id: 1 }, { id: 2, draining: true, up: true }, { id: 3 }]);
      expect((await nodes())[0]).not.toHaveProperty('draining');
    }
    const users = Array.from({ length: 20 }, (_, i) => `user-${i}`);
    // Two of three are left: without the vote of the drained node no request would be granted.
    await cluster.stopNode(3);
    await eventually('node 1 leads all partitions', () =>
      leaders(1).every((leader) => leader === 1) ? true : undefined,
    );
    for (const userId of users)
      await eventually('it is granted', async () =>
        (await ask(1, userId)).status === 200 ? true : undefined,
      );
    await cluster.startNode(3);
    await cluster.ready();
  });

  it('is still drained after a restart, and stays without leaderships', async () => {
    await cluster.stopNode(2);
    await cluster.startNode(2);
    await eventually('it knows that it is drained', async () => {
      const { body } = await readiness(2);
      return (body as { status: string }).status === 'draining' ? true : undefined;
    });
    const others = await eventually('it leads nothing', () =>
      leaders(1).includes(2) ? undefined : leaders(1),
    );
    expect(others).toHaveLength(PARTITIONS);
  });

  it('prevents draining too many others; repeating the request is accepted', async () => {
    await expect(drain(3, true)).rejects.toThrow(
      'at least 2 of 3 nodes must stay undrained, but 1 would be left: node 2 is drained already',
    );
    await expect(drain(9, true)).rejects.toThrow('no node of this id belongs to the cluster');
    expect(await drain(2, true, 2)).toMatchObject({ done: true });
  });

  it('accepts requests and leads again when the drain is ended', async () => {
    expect(await drain(2, false, 3)).toMatchObject({ draining: false, done: true });
    await eventually('it leads its partitions', () => (leaders(1).includes(2) ? true : undefined));
    await eventually('it grants', async () => ((await ask(2, 'ada')).status === 200 ? true : undefined));
    expect(cluster.fatalErrors).toEqual([]);
  });
});
