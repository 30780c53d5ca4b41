/**
 * Random histories of the real driver: several groups on one disk per node, slow writes that overlap with messages,
 * snapshots taken and streamed all the time, crashes in which a write is lost or kept. Replicas must agree at every
 * common index, applied entries are never lost, and in the end every group makes progress.
 */
import { describe, expect, it } from 'vitest';
import { eachSeed, seeded, someSeeds } from '../seeded.ts';
import { Chaos, drawOptions } from './chaos.ts';
import { Cluster } from './cluster.ts';

const STEPS = 1_500;

/** All faults end: every group gets a leader, and everything proposed then is applied everywhere. */
async function expectProgress(cluster: Cluster, chaos: Chaos): Promise<void> {
  const before = new Map(cluster.groups.map((group) => [group, cluster.agreement.appliedMax(group)]));
  chaos.end();
  await cluster.tick(60);
  for (const group of cluster.groups) {
    const leader = cluster.leaderOf(group);
    if (leader === undefined) throw new Error(`group ${group} has no leader`);
    leader.propose('after all', group);
  }
  await cluster.tick(60);
  for (const group of cluster.groups) {
    const { index } = cluster.leaderOf(group)?.appOf(group) ?? { index: 0 };
    expect(index).toBeGreaterThan(before.get(group) ?? 0);
    for (const node of cluster.nodes.values()) {
      expect([node.id, group, node.appOf(group).index]).toEqual([node.id, group, index]);
    }
  }
}

describe('random histories of the driver', () => {
  it('replicas agree, nothing applied is lost, and every group makes progress in the end', async () => {
    await eachSeed(someSeeds(20, 4), async (seed) => {
      const random = seeded(seed);
      const cluster = new Cluster({
        voters: random(3) === 0 ? 5 : 3,
        groups: 1 + random(3),
        seed,
        options: {
          ...drawOptions(random),
          snapshotEveryBytes: 200 + random(800),
          balanceTicks: random(2) === 0 ? 1_000_000 : 20,
        },
      });
      const chaos = new Chaos(cluster, random);
      await chaos.run(STEPS);
      await expectProgress(cluster, chaos);
    });
  });
});
