/**
 * Removing a replica from a node: the tombstone that is left, and when it is allowed. The placement versions are those
 * in
 * docs/internals/raft.md, "Removing a replica".
 */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../raft/types.ts';
import { Cluster } from './driver/cluster.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { messageOf } from './driver/parcel.ts';
import { movedAway } from './moved-away.ts';

describe('a replica that is removed', () => {
  it('leaves a tombstone with a term in which it never was, also after a restart', async () => {
    const { cluster, first: node } = await movedAway();
    const { term } = node.tombstone?.hardState ?? { term: 0 };
    expect(node.holdsGroup).toBe(false);
    expect(node.disk.get(GROUP)).toMatchObject({
      removed: true,
      removedAt: 1,
      placement: 1,
      hardState: { vote: 0, commit: 0 },
      entries: [],
    });
    const spokenOf = cluster.sent.map((parcel) =>
      parcel.from === node.id ? (messageOf(parcel)?.term ?? 0) : 0,
    );
    expect(term).toBeGreaterThan(Math.max(...spokenOf));
    node.crash();
    node.start();
    expect(node.tombstone).toMatchObject({ removedAt: 1, hardState: { term } });
    await cluster.tick(5 * ELECTION_TICKS);
    await cluster.commit('c', [5, 6, 7]);
  });

  it('sends nothing more, not even messages that waited for the disk, and receives nothing', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.node(leader.id === 1 ? 2 : 1);
    cluster.stalled.add(follower.id);
    leader.propose('x');
    await cluster.settle();
    expect(follower.isWriting).toBe(true);
    cluster.sent.length = 0;
    const { index } = follower.app;
    follower.remove(1);
    cluster.stalled.clear();
    await cluster.settle();
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter(({ from }) => from === follower.id)).toEqual([]);
    expect(follower.app.index).toBe(index);
    expect(follower.tombstone).toBeDefined();
  });

  it.each(['lost', 'kept'] as const)(
    'and crashes before that is on disk (%s) is complete or removed',
    async (fate) => {
      const cluster = new Cluster({ voters: 3 });
      await cluster.commit('a', [1, 2, 3]);
      const node = cluster.node(1);
      cluster.stalled.add(1);
      node.remove(1);
      await cluster.settle();
      expect(node.isWriting).toBe(true);
      expect(node.tombstone).toBeUndefined();
      node.crash(fate);
      cluster.stalled.clear();
      node.start();
      expect(node.holdsGroup).toBe(fate === 'lost');
      expect(node.tombstone !== undefined).toBe(fate === 'kept');
    },
  );

  it('answers waiting requests with an unknown outcome', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const reads: (number | undefined)[] = [];
    leader.raft.readIndex(GROUP, (index) => reads.push(index));
    await cluster.settle();
    leader.raft.readIndex(GROUP, (index) => reads.push(index));
    const began = cluster.change(leader, [{ kind: 'addLearner', node: 9 }]);
    await cluster.settle();
    const asked = cluster.change(leader, [{ kind: 'addLearner', node: 8 }]);
    leader.remove(1);
    expect(reads).toEqual([undefined, undefined]);
    expect(began.result).toEqual({ ok: false, reason: 'unknownOutcome' });
    expect(asked.result).toEqual({ ok: false, reason: 'notLeader' });
  });

  it('comes back only by a placement above the one that removed it', async () => {
    const { cluster, first, second } = await movedAway();
    expect(() => first.comeBack(1)).toThrow(/was removed by placement 1/);
    second.comeBack(2);
    await cluster.settle();
    expect(second.disk.get(GROUP)).toMatchObject({ removed: false, removedAt: 1, placement: 2 });
  });
});

describe('the conditions for removing a replica', () => {
  it('an offer is confirmed when it is on disk', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.elect();
    cluster.stalled.add(2);
    let isReported = false;
    cluster.node(2).raft.offerGroup(GROUP, 7, () => {
      isReported = true;
    });
    await cluster.settle();
    expect(isReported).toBe(false);
    expect(cluster.node(2).disk.get(GROUP)?.placement).toBe(0);
    cluster.stalled.clear();
    await cluster.settle();
    expect(isReported).toBe(true);
    expect(cluster.node(2).disk.get(GROUP)?.placement).toBe(7);
  });

  it('the newest epoch in the log counts before it is applied', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.node((leader.id % 3) + 1);
    cluster.passes = ({ from, to }) => from === leader.id && to === follower.id;
    cluster.change(leader, [{ kind: 'addLearner', node: 9 }], 4);
    await cluster.settle();
    expect(follower.raft.configOf(GROUP)?.epoch).toBe(0);
    expect(follower.raft.newestEpoch(GROUP)).toBe(4);
    expect(cluster.node((follower.id % 3) + 1).raft.newestEpoch(GROUP)).toBe(0);
  });

  it('a leader knows whether a learner was heard from recently', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.joinAsLearner(4);
    const leader = await cluster.elect();
    const reached = (node: NodeId): boolean => leader.raft.isReachable(GROUP, node);
    await cluster.tick(3 * ELECTION_TICKS);
    expect([1, 2, 3, 4, 5].map(reached)).toEqual([true, true, true, true, false]);
    cluster.node(4).crash();
    await cluster.tick(3 * ELECTION_TICKS);
    expect(reached(4)).toBe(false);
    cluster.node(4).start();
    await cluster.tick(ELECTION_TICKS);
    expect(reached(4)).toBe(true);
    const follower = cluster.node(leader.id === 1 ? 2 : 1);
    expect(follower.raft.isReachable(GROUP, 4)).toBe(false);
  });
});
