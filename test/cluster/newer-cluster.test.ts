/** Tests that this program refuses to run in a cluster whose version a newer program has raised, and says why. */
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

it('a node stops when the cluster version is newer than its own, and again at every start', async () => {
  cluster = await InProcessCluster.create({ rules: [RULE], partitions: 1 });
  await cluster.startAll();
  const { meta } = await eventually('group 0 has a leader, which has created the cluster', () =>
    IDS.map((id) => cluster.node(id).core).find(
      (core) => core.meta.isLeader && core.meta.state !== undefined,
    ),
  );
  expect(meta.state?.clusterVersion).toBe(VERSIONS.max);
  const terms = new Set<number>();
  /** The entry as a newer program writes it. This version never proposes it. */
  const proposeNewer = (): void => {
    for (const { meta, raft } of IDS.map((id) => cluster.node(id).core)) {
      const { term = 0 } = raft.status(META_GROUP) ?? {};
      // Propose once in each term: a proposal may be lost when its leader stops leading.
      if (!meta.isLeader || terms.has(term)) continue;
      terms.add(term);
      const newer = [encodeMeta({ type: 'upgrade', change: { version: VERSIONS.max + 1 } })];
      meta.takeProposal = () => newer.pop();
      raft.requestProposal(META_GROUP);
    }
  };
  const stopped = async (meanwhile = (): void => {}): Promise<void> => {
    // The last node may never learn of the commit: without a quorum it decides nothing.
    await eventually('a majority stops', () => {
      meanwhile();
      return new Set(cluster.fatalErrors.map(({ node }) => node)).size >= 2 ? true : undefined;
    });
    for (const { error } of cluster.fatalErrors) {
      expect(error).toMatchObject({ code: 'NEWER_CLUSTER' });
      expect(String(error)).toContain('start this node with a newer quorate');
    }
  };
  await stopped(proposeNewer);
  for (const id of IDS) await cluster.stopNode(id);
  cluster.fatalErrors.length = 0;
  for (const id of IDS) await cluster.startNode(id);
  await stopped();
});
