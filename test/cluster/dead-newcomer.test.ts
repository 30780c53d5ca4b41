/** Tests that a node that was added but never started does not block the moves of partitions to another new node. */
import { afterEach, describe, expect, it } from 'vitest';
import { groupOfPartition } from '../../src/partition/placement.ts';
import { eventually, freePorts } from './harness.ts';
import { InProcessCluster } from './in-process.ts';
import { nodeAt } from './nodes-command.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;
/** Enough partitions that more wait for the dead node than a leader moves at a time. */
const PARTITIONS = 96;
const [DEAD, HEALTHY] = [4, 5];

describe('two nodes that are added at once, if one never starts', () => {
  let cluster: InProcessCluster;
  afterEach(async () => {
    await cluster.stop();
  });

  it('do not delay partitions that move only to the node that runs', async () => {
    cluster = await InProcessCluster.create({ rules: [RULE], partitions: PARTITIONS });
    await cluster.startAll();
    const [http = 0, peer = 0] = await freePorts(2);
    await cluster.accepted({ add: nodeAt(DEAD, http, peer) });
    await cluster.accepted({ add: await cluster.join(HEALTHY) });
    const { core } = cluster.node(HEALTHY);
    const meant = await eventually('node 5 knows which partitions it should hold', () => {
      if (core.meta.state?.version !== 3) return undefined;
      const all = Array.from({ length: PARTITIONS }, (_, partition) => core.placement.replicasOf(partition));
      return all.flatMap((nodes, i) => (nodes.includes(HEALTHY) && !nodes.includes(DEAD) ? [i] : []));
    });
    expect(meant.length).toBeGreaterThan(10);
    const arrived = await eventually('these partitions have moved', () => {
      const there = meant.filter((partition) =>
        core.raft.configOf(groupOfPartition(partition))?.voters.includes(HEALTHY),
      );
      return there.length === meant.length ? there : undefined;
    });
    expect(arrived).toEqual(meant);
    // The dead node holds no replica, so no partition waits for its copy.
    const voters = [1, 2, 3].flatMap((id) =>
      meant.map((partition) => cluster.node(id).core.raft.configOf(groupOfPartition(partition))?.learners),
    );
    expect(voters.flat()).not.toContain(DEAD);
    // It is removed again although it never started. Now no partition waits for it.
    await cluster.change({ remove: DEAD });
    const settled = await eventually('version 4 is settled', () => {
      const { state } = cluster.node(1).core.meta;
      return state?.settledVersion === 4 ? state : undefined;
    });
    expect(settled).toMatchObject({ version: 4, retired: [DEAD] });
  });
});
