/** Kills nodes at random moments during a drain: a repeated drain succeeds, and clients never get a grant too many. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClusterCommandError } from '../../src/cli/ask-node.ts';
import { drainNode } from '../../src/cli/drain-command.ts';
import { eventually, TestCluster } from './harness.ts';
import { PersistentClients } from './persistent-clients.ts';

const RULE = { id: 'default', limit: 25, windowMillis: 600_000, clock: 'cluster' } as const;
/** Usually after the cluster has recorded the drain and before the drain has ended. */
const KILL_MILLIS_MAX = 120;
/** Answers that clients may get while a node was killed or is drained. */
const EXPLAINED = new Set(['draining', 'no_leader', 'unknown_outcome', 'deadline', 'starting']);

const quietly = (): void => undefined;

describe('a node that is drained while nodes are killed', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await TestCluster.start({ rules: [RULE], partitions: 8 });
  });
  afterAll(async () => cluster.stop());

  async function drain(isDraining: boolean, asked: number): Promise<'done' | 'pending'> {
    const url = `http://127.0.0.1:${cluster.port(asked)}`;
    return drainNode({ node: url, id: 2, isDraining, wait: true, timeoutMillis: 60_000, print: quietly });
  }

  async function stateOf(id: number): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${cluster.port(id)}/readyz`).catch(() => undefined);
    if (response === undefined) return 'no answer';
    const { status, leads } = (await response.json()) as { status: string; leads?: number };
    return `${response.status} ${status} ${leads ?? ''}`.trim();
  }

  it('is drained in the end, also after it was killed, and clients get no grant too many', async () => {
    const clients = new PersistentClients(8, () => cluster.ids.map((id) => cluster.port(id)));
    for (const [victim, asked] of [
      [2, 1],
      [1, 1],
      [3, 2],
    ] as const) {
      const killMillis = Math.random() * KILL_MILLIS_MAX;
      console.log(`node ${victim} is killed ${killMillis.toFixed(1)} ms after node ${asked} was asked`);
      // The outcome does not matter: the node may be down, or end during the request.
      const first = drain(true, asked).catch((error: unknown) => error);
      await delay(killMillis);
      await cluster.kill(victim);
      cluster.startNode(victim);
      const outcome = await first;
      expect(outcome === 'done' || outcome instanceof ClusterCommandError).toBe(true);
      await eventually('nodes answer', async () =>
        (await stateOf(victim)) === 'no answer' ? undefined : true,
      );
      expect(await drain(true, 3)).toBe('done');
      const isDrained = async (): Promise<true | undefined> =>
        (await stateOf(2)) === '503 draining 0' ? true : undefined;
      // The node may not know the new leader yet.
      await eventually('node 2 is drained', isDrained);
      // The node knows that itself.
      await cluster.kill(2);
      cluster.startNode(2);
      await eventually('node 2 is drained after it was killed', isDrained);
      expect(await drain(false, 3)).toBe('done');
      await cluster.ready();
    }
    await clients.stop();
    const { counts, grants, answers } = clients;
    console.log(`answers ${JSON.stringify(counts)}`);
    expect([...grants.values()].filter((count) => count > RULE.limit)).toEqual([]);
    expect([...grants.values()].filter((count) => count === RULE.limit).length).toBeGreaterThan(0);
    const unexplained = answers.filter(
      ({ status, reason }) => ![200, 429].includes(status) && !(status === 503 && EXPLAINED.has(reason)),
    );
    expect(unexplained).toEqual([]);
  });
});
