/**
 * Changes of members that are cut off or whose nodes crash midway: which decisions are possible meanwhile, and how they
 * end.
 */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../raft/types.ts';
import { ascending, Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { isCampaign, typeOf } from './driver/parcel.ts';

/** Two of three are being replaced, in one change that is held up when the leader acts by the joint configuration. */
async function replacingTwo(): Promise<{ cluster: Cluster; leader: Node; old: NodeId[] }> {
  const cluster = new Cluster({ voters: 3 });
  const leader = await cluster.elect();
  const old = [1, 2, 3].filter((id) => id !== leader.id);
  for (const id of [4, 5]) {
    await cluster.joinAsLearner(id);
  }
  await cluster.commit('a', [1, 2, 3, 4, 5]);
  cluster.passes = () => !leader.isJoint;
  cluster.change(leader, [
    { kind: 'promote', node: 4 },
    { kind: 'promote', node: 5 },
    ...old.map((node) => ({ kind: 'remove', node }) as const),
  ]);
  await cluster.until(() => leader.isJoint);
  return { cluster, leader, old };
}

describe('a change under way', () => {
  it('61: commits nothing without a majority of the old voters', async () => {
    const { cluster, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    cluster.isolate(leader.id, 4, 5);
    leader.propose('new voters only');
    // Longer than it can lead without them.
    await cluster.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, 4, 5]) expect(cluster.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    cluster.heal();
    await cluster.until(() => cluster.leader !== undefined && !cluster.leader.isJoint);
    await cluster.commit('b', [leader.id, 4, 5]);
    expect(cluster.voters).toEqual([leader.id, 4, 5].toSorted(ascending));
    for (const id of old) expect(cluster.node(id).isLeader).toBe(false);
  });

  it('61: commits nothing without a majority of the new voters', async () => {
    const { cluster, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    cluster.isolate(4, 5);
    leader.propose('old voters only');
    await cluster.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, ...old]) expect(cluster.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    cluster.heal();
    await cluster.commit('b', [leader.id, 4, 5]);
  });

  it('61: is completed by the same leader if it tries to hand over meanwhile and no node takes over', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const id of [4, 5]) await cluster.joinAsLearner(id);
    await cluster.commit('a', [1, 2, 3, 4, 5]);
    for (const { id } of cluster.up) if (id !== leader.id) cluster.stalled.add(id);
    cluster.passes = (parcel) => typeOf(parcel) !== 'timeoutNow';
    cluster.change(leader, [
      { kind: 'promote', node: 4 },
      { kind: 'promote', node: 5 },
    ]);
    await cluster.settle();
    leader.raft.handOver();
    cluster.stalled.clear();
    await cluster.settle();
    // The change was applied while the leader could propose nothing, and no entry comes after it.
    expect(leader.isJoint).toBe(true);
    await cluster.until(() => leader.isLeader && !leader.isJoint, 3 * ELECTION_TICKS);
    expect(cluster.voters).toEqual([1, 2, 3, 4, 5]);
  });

  it('61: elects no leader without a majority of both', async () => {
    const { cluster, leader, old } = await replacingTwo();
    // All remaining nodes learn that the change is under way, but none learns that it could be completed.
    cluster.passes = ({ from, to }) => !(old.includes(from) && to === leader.id);
    await cluster.until(() => cluster.node(4).isJoint && cluster.node(5).isJoint);
    leader.crash();
    for (const id of old) cluster.node(id).crash();
    cluster.heal();
    await cluster.tick(10 * ELECTION_TICKS);
    expect(cluster.leader).toBeUndefined();
    leader.start();
    await cluster.tick(10 * ELECTION_TICKS);
    expect(cluster.leader).toBeUndefined();
    for (const id of old) cluster.node(id).start();
    await cluster.commit('b', [leader.id, 4, 5]);
  });
});

describe('a change and its crashes', () => {
  it('61: the joint configuration survives its leader: the next one leaves it', async () => {
    for (const fate of ['lost', 'kept'] as const) {
      const cluster = new Cluster({ voters: 3 });
      const leader = await cluster.elect();
      await cluster.joinAsLearner(4);
      await cluster.commit('a', [4]);
      // The entry that leaves the joint configuration never gets out of the leader that proposes it.
      cluster.passes = ({ from }) => !(from === leader.id && leader.isJoint);
      const answer = cluster.change(leader, [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: leader.id },
      ]);
      await cluster.until(() => leader.isJoint);
      expect(answer.result).toBeUndefined();
      leader.crash(fate);
      cluster.heal();
      await cluster.until(
        () => cluster.leader !== undefined && !cluster.leader.isJoint && cluster.voters.includes(4),
        2_000,
      );
      leader.start();
      await cluster.commit(
        'b',
        [2, 3, 4].filter((id) => cluster.voters.includes(id)),
      );
      expect(cluster.voters).toEqual([1, 2, 3, 4].filter((id) => id !== leader.id));
    }
  });

  it('60: no campaign while a committed change is not applied', async () => {
    const cluster = new Cluster({ voters: 3, options: { applyBytesMax: 1 } });
    const leader = await cluster.elect();
    const follower = cluster.otherThan(leader);
    // Its disk does not answer, so it cannot apply an entry that it knows to be committed.
    cluster.stalled.add(follower.id);
    const answer = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => answer.result?.ok === true);
    await cluster.tick(5);
    expect(follower.status.commit).toBeGreaterThan(follower.status.applied);
    cluster.isolate(follower.id);
    cluster.sent.length = 0;
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter((parcel) => parcel.from === follower.id && isCampaign(parcel))).toEqual([]);
    cluster.stalled.clear();
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter((parcel) => parcel.from === follower.id && isCampaign(parcel))).not.toEqual(
      [],
    );
    cluster.heal();
    await cluster.commit('a', [1, 2, 3]);
  });

  it('61, 65: every node crashes at every step of a replacement, one at a time', async () => {
    // The number of messages that were delivered is the clock by which the crash happens.
    for (let after = 1; after <= 60; after += 1) {
      for (const victim of [1, 2, 3, 4]) {
        const cluster = new Cluster({ voters: 3, seed: after });
        await cluster.elect();
        await cluster.joinAsLearner(4);
        await cluster.commit('a', [4]);
        const leader = await cluster.elect();
        const gone = [1, 2, 3].find((id) => id !== leader.id && id !== victim) ?? 0;
        let delivered = 0;
        cluster.passes = () => {
          delivered += 1;
          if (delivered === after) cluster.node(victim).crash(after % 2 === 0 ? 'lost' : 'kept');
          return cluster.node(victim).isUp || delivered > after;
        };
        cluster.change(leader, [
          { kind: 'promote', node: 4 },
          { kind: 'remove', node: gone },
        ]);
        await cluster.tick(3 * ELECTION_TICKS);
        if (!cluster.node(victim).isUp) cluster.node(victim).start();
        cluster.heal();
        await cluster.until(() => cluster.leader !== undefined && !cluster.leader.isJoint);
        await cluster.commit('b', cluster.voters);
        const voters = cluster.voters;
        expect([[1, 2, 3], [1, 2, 3, 4].filter((id) => id !== gone)]).toContainEqual(voters);
      }
    }
  });

  it('a restart finds the configuration in the log, and in the snapshot once there is one', async () => {
    for (const snapshotEveryBytes of [1 << 30, 100]) {
      const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes } });
      await cluster.join(4);
      for (let i = 0; i < 50; i += 1) await cluster.commit(`${i}`, [1, 2, 3, 4]);
      const meta = cluster.node(4).disk.get(GROUP)?.snapshot;
      expect(meta?.voters.toSorted(ascending)).toEqual(snapshotEveryBytes === 100 ? [1, 2, 3, 4] : undefined);
      for (const node of cluster.up) node.crash();
      for (const node of cluster.nodes.values()) node.start();
      await cluster.commit('again', [1, 2, 3, 4]);
      for (const node of cluster.up)
        expect(node.status.config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4]);
    }
  });

  it('63: a snapshot taken in a joint configuration brings it along', async () => {
    const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 1 } });
    const leader = await cluster.elect();
    const late = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    const gone = [1, 2, 3].find((id) => id !== leader.id && id !== late) ?? 0;
    cluster.isolate(late);
    // Leaving the joint configuration needs a majority of the old voters: hold that entry back from all disks but the
    // leader's.
    const answer = cluster.change(leader, [{ kind: 'remove', node: gone }]);
    await cluster.until(() => leader.isJoint || answer.result !== undefined);
    await cluster.tick(10);
    cluster.heal();
    await cluster.until(() => answer.result?.ok === true);
    await cluster.commit('a', [leader.id, late]);
    const installed = cluster.node(late);
    expect(installed.status.config.voters.toSorted(ascending)).toEqual([leader.id, late].toSorted(ascending));
    expect(installed.app.config).toEqual(installed.status.config);
  });
});
