/** Tests a node that knows none of the current nodes, because it was away for long or its configuration is old. */
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;

describe('a node that knows none of the current nodes', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('returns, or joins, after all nodes that it knew were replaced', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: 4 });
    await cluster.startAll();
    await cluster.stopNode(3);
    for (const [add, remove] of [
      [4, 1],
      [5, 2],
    ] as const) {
      await cluster.change({ add: await cluster.join(add), remove });
      await cluster.stopNode(remove);
    }
    await cluster.startNode(3);
    const isReady = (id: number): true | undefined => cluster.node(id).core.isReady || undefined;
    await eventually('node 3 takes part again', () => isReady(3));
    // The founders in its configuration are gone, except one that leaves with this change.
    await cluster.change({ add: await cluster.join(6), remove: 3 });
    await cluster.stopNode(3);
    await eventually('node 6 takes part', () => isReady(6));
    expect(await cluster.decided(6, { userId: 'ada' })).toMatchObject({ kind: 'decision' });
    await cluster.change({ add: await cluster.join(7), remove: 4 });
    await eventually('node 7 takes part', () => isReady(7));
    expect(await cluster.decided(7, { userId: 'ada' })).toMatchObject({ kind: 'decision' });
  });
});
