/** Tests that a removed node learns of its removal even if it was down, and that a new machine may use its address. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitUntilReady } from '../../cluster/processes.ts';
import type { NodeChange } from '../../src/api/cluster-change.ts';
import { EXIT_TEMPORARY } from '../../src/cli/explain-error.ts';
import { joinCluster } from '../../src/cli/join-cluster.ts';
import { readKnownMembers } from '../../src/node/member-cache.ts';
import { nodeDirectory } from '../../src/config/cluster-directory.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import { allowAt, eventually, freePorts, TestCluster, WAIT_MILLIS_MAX } from './harness.ts';
import { command, quorate } from './nodes-command.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' } as const;

describe('a node that is removed', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [RULE], nodes: 5, partitions: 8 });
  });
  afterAll(async () => cluster.stop());

  const address = (id: number): NodeAddress => {
    const found = cluster.config.nodes.find((node) => node.id === id);
    if (found === undefined) throw new Error(`there is no node ${id}`);
    return found;
  };

  async function expectRemoved(id: number): Promise<void> {
    const ready = await eventually(`node ${id} knows that it was removed`, async () => {
      const response = await fetch(`http://127.0.0.1:${cluster.port(id)}/readyz`).catch(() => undefined);
      const body = (await response?.json()) as { status: string; reason: string } | undefined;
      return body?.status === 'removed' ? { code: response?.status, ...body } : undefined;
    });
    expect(ready).toMatchObject({ code: 503, reason: expect.stringContaining(`node ${id} was removed`) });
    const response = await fetch(`http://127.0.0.1:${cluster.port(id)}/v1/cluster`);
    expect(await response.json()).toMatchObject({ self: { id, membership: 'removed' } });
    const answer = await allowAt(cluster.port(id), { userId: 'ada' });
    expect(answer).toMatchObject({ status: 503, body: { reason: 'not_member', proposed: false } });
    // Clients that keep their connections are sent elsewhere.
    expect(response.headers.get('connection')).toBe('close');
    // The removal is stored for the script that starts the nodes of this directory.
    await eventually('the removal is stored', async () => {
      const known = await readKnownMembers(nodeDirectory(cluster.directory, id));
      return known?.isRemoved === true ? true : undefined;
    });
  }

  /**
   * Asks a removed node why it no longer takes part. A node that is paused for two seconds does not answer, so the
   * request is repeated.
   */
  async function askedOfRemoved(id: number, change: NodeChange): Promise<string> {
    const [reported] = await eventually(`node ${id} says why it no longer takes part`, () =>
      command(cluster.port(id), change).then(
        (value) => [value] as const,
        (error: unknown) => {
          if (/this node does not belong to the cluster/.test(String(error))) return undefined;
          throw error;
        },
      ),
    );
    return reported;
  }

  it('is removed by a request to itself, and knows it at once', async () => {
    const reported = await quorate('nodes', 'remove', '1', '--node', `http://127.0.0.1:${cluster.port(1)}`);
    expect(reported).toContain('done: all partitions have moved');
    await expectRemoved(1);
  });

  it('answers a repeated removal as done, and changes nothing else', async () => {
    const lines = (await askedOfRemoved(1, { remove: 1 })).split('\n');
    // Without the lines that appear only if an answer takes long.
    const isWaiting = /^(still: |waiting for an answer from |not accepted yet )/;
    expect(lines.filter((line) => !isWaiting.test(line))).toEqual(['done: all partitions have moved', '']);
    await expect(askedOfRemoved(1, { remove: 2 })).rejects.toMatchObject({
      code: 64,
      stderr: expect.stringContaining('node 1 was removed from the cluster'),
    });
  });

  it('learns of its removal when it returns', async () => {
    await cluster.kill(2);
    await command(cluster.port(3), { remove: 2 });
    cluster.startNode(2);
    await expectRemoved(2);
    // The node stays removed and disturbs no other node.
    await delay(1_000);
    await expectRemoved(2);
    const others = cluster.config.nodes.filter(({ id }) => id > 2);
    await waitUntilReady({ nodes: others }, WAIT_MILLIS_MAX);
  });

  it('frees its address for a new machine', async () => {
    await cluster.kill(1);
    const six: NodeAddress = { ...address(1), id: 6 };
    const reported = await joinCluster(cluster.directory, six);
    expect(reported.join()).toContain('node 1 was at that address');
    cluster.startNode(6);
    expect(await command(cluster.port(3), { add: six })).toContain('done: all partitions have moved');
    const members = [six, ...cluster.config.nodes.filter(({ id }) => id > 2)];
    const { nodes } = await waitUntilReady({ nodes: members }, WAIT_MILLIS_MAX);
    expect(nodes.map(({ id, up }) => [id, up])).toEqual([3, 4, 5, 6].map((id) => [id, true]));
  });

  it('is distinguished from an address where no node ever was', async () => {
    const [free = 0] = await freePorts(1);
    const asked = ['nodes', 'remove', '3', '--node', `http://127.0.0.1:${free}`, '--timeout', '2000'];
    // On a busy machine the command may report a timeout instead of the refusal.
    const ended = await eventually('the connection is refused before the timeout', () =>
      quorate(...asked).catch((error: unknown) =>
        (error as { readonly code?: unknown }).code === EXIT_TEMPORARY ? undefined : error,
      ),
    );
    expect(ended).toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/no node listens at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\).*--node/),
    });
  });
});
