/** Changes of members that are refused, and the reasons. */
import { describe, expect, it } from 'vitest';
import { Cluster, refusalOf } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';

/** Runs turns but sends and writes nothing: each node decides by its present state. */
async function refused(
  cluster: Cluster,
  node: Node,
  change: Parameters<Cluster['change']>[1],
  epoch?: number,
): Promise<string | undefined> {
  const answer = cluster.change(node, change, epoch);
  await cluster.settle();
  return refusalOf(answer);
}

describe('a requested change is refused', () => {
  it('66: by a node that does not lead', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.up.find(({ id }) => id !== leader.id);
    expect(follower && (await refused(cluster, follower, [{ kind: 'addLearner', node: 4 }]))).toBe(
      'notLeader',
    );
  });

  it('56: while another change is pending, or may be', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const first = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    expect(await refused(cluster, leader, [{ kind: 'addLearner', node: 5 }])).toBe('changePending');
    expect(first.result).toBeUndefined();
    cluster.heal();
    await cluster.until(() => first.result?.ok === true);
    expect(await refused(cluster, leader, [{ kind: 'addLearner', node: 4 }])).toBe('alreadyMember');
  });

  it('56: by a new leader, until its own first entry is applied', async () => {
    const cluster = new Cluster({ voters: 3 });
    const old = await cluster.elect();
    // The new leader wins its votes and can commit nothing.
    old.crash();
    cluster.passes = ({ message }) => message.kind !== 'message' || message.message.type !== 'appendResponse';
    await cluster.until(() => cluster.leader !== undefined);
    const { leader } = cluster;
    expect(leader && (await refused(cluster, leader, [{ kind: 'addLearner', node: 4 }]))).toBe(
      'changePending',
    );
    cluster.heal();
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
  });

  it('66: for a placement that a newer one has replaced, under every later leader', async () => {
    const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 300 } });
    cluster.add(4);
    // One version of the placement asks for two changes: enter and catch up, then replace.
    await cluster.changed([{ kind: 'addLearner', node: 4 }], 7);
    await cluster.commit('a', [4]);
    const old = await cluster.elect();
    const gone = [1, 2, 3].find((id) => id !== old.id) ?? 0;
    const replace = [
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ] as const;
    expect(await cluster.changed(replace, 7)).toMatchObject({ epoch: 7, outgoing: [] });
    const back = [{ kind: 'addLearner', node: gone }] as const;
    expect(await refused(cluster, old, back, 6)).toBe('staleEpoch');
    // The next leader knows it from its log, and after a restart from its snapshot.
    old.crash();
    const next = await cluster.elect();
    expect(next.id).not.toBe(old.id);
    expect(await refused(cluster, next, back, 6)).toBe('staleEpoch');
    for (let i = 0; i < 20; i += 1) await cluster.commit(`${i}`);
    expect(next.disk.get(GROUP)?.snapshot?.epoch).toBe(7);
    old.start();
    for (const id of cluster.voters) {
      cluster.node(id).crash();
      cluster.node(id).start();
    }
    expect(await refused(cluster, await cluster.elect(), back, 6)).toBe('staleEpoch');
    expect(await cluster.changed(back, 8)).toMatchObject({ epoch: 8, learners: [gone] });
  });

  it('61: if it would promote a learner that has not caught up, or does not answer', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
    const promote = [{ kind: 'promote', node: 4 }] as const;
    expect(await refused(cluster, leader, promote)).toBe('learnerBehind');
    expect(await refused(cluster, leader, [{ kind: 'promote', node: 5 }])).toBe('unknownNode');
    cluster.add(4);
    await cluster.commit('a', [4]);
    await cluster.changed(promote);
  });

  it('65: if too few of the voters could be reached after it', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) throw new Error('two followers');
    cluster.node(a).crash();
    await cluster.tick(3 * ELECTION_TICKS);
    expect(await refused(cluster, leader, [{ kind: 'remove', node: b }])).toBe('wouldLoseQuorum');
    expect(
      await refused(
        cluster,
        leader,
        [1, 2, 3].map((node) => ({ kind: 'remove', node })),
      ),
    ).toBe('wouldLoseQuorum');
    // The crashed node may be removed.
    await cluster.changed([{ kind: 'remove', node: a }]);
    await cluster.commit('b', [b]);
  });

  it('or has an unknown outcome, if its leader is deposed midway', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const answer = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => answer.result !== undefined);
    expect(refusalOf(answer)).toBe('unknownOutcome');
    await cluster.commit('others go on');
    cluster.heal();
    await cluster.commit('b', [1, 2, 3]);
    // The change was overwritten and never took effect anywhere.
    for (const node of cluster.up) expect(node.status.config.learners).toEqual([]);
  });
});
