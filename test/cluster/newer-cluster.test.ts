/** A newer program has raised the version of the cluster: this one must not go on from there, whenever it is started, and says why. */
import { afterEach, expect, it } from 'vitest';
import { encodeMeta } from '../../src/meta/meta-form.ts';
import { META_GROUP } from '../../src/meta/cluster-placement.ts';
import { VERSIONS } from '../../src/api/versions.ts';
import { eventually } from './harness.ts';
import { InProcessCluster } from './in-process.ts';

const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' } as const;
const IDS = [1, 2, 3] as const;

let cluster: InProcessCluster;
afterEach(async () => cluster.stop());

it('a node stops at a version that is newer than its own, and every time it is started again', async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], partitions: 1 });
  await cluster.startAll();
  const leader = await eventually('group 0 has a leader, which has created the cluster', () =>
    IDS.find((id) => cluster.node(id).core.meta.isLeader && cluster.node(id).core.meta.state !== undefined),
  );
  const { meta, raft } = cluster.node(leader).core;
  expect(meta.state?.clusterVersion).toBe(VERSIONS.max);
  // As the next version will write it; this one would propose no such thing.
  const newer = [encodeMeta({ type: 'upgrade', change: { version: VERSIONS.max + 1 } })];
  meta.takeProposal = () => newer.pop();
  raft.requestProposal(META_GROUP);
  const stopped = async (): Promise<void> => {
    // The last one may never hear that it was committed: without a quorum it decides nothing.
    await eventually('a majority stops', () =>
      new Set(cluster.fatalErrors.map(({ node }) => node)).size >= 2 ? true : undefined,
    );
    for (const { error } of cluster.fatalErrors) {
      expect(error).toMatchObject({ code: 'NEWER_CLUSTER' });
      expect(String(error)).toContain('start this node with a newer quorate');
    }
  };
  await stopped();
  for (const id of IDS) await cluster.stopNode(id);
  cluster.fatalErrors.length = 0;
  for (const id of IDS) await cluster.startNode(id);
  await stopped();
});
