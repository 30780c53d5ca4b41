/**
 * Changes of leader, or of the term of the same leader: how soon they happen, and that the application learns of them.
 */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import { HEARTBEAT_TICKS } from './options.ts';
import { typeOf } from './parcel.ts';

describe('failover', () => {
  it('to the same leader is reported to the application of a follower that was not asked to vote', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [voter, follower] = cluster.up.filter(({ id }) => id !== leader.id);
    if (voter === undefined || follower === undefined) throw new Error('two followers');
    await cluster.tick(HEARTBEAT_TICKS);
    const { term } = leader.status;
    expect(follower.app.status).toEqual({ isLeader: false, term, leader: leader.id });
    cluster.passes = (parcel) => parcel.to !== follower.id || typeOf(parcel) !== 'vote';
    // Another node is in a newer term, so the leader steps down, and is elected again at once.
    const answer = { type: 'appendResponse', from: voter.id, to: leader.id, term: term + 1 } as const;
    const message = { ...answer, rejected: true, index: 0, hintIndex: 0, hintTerm: 0 };
    leader.raft.receive([{ kind: 'message', group: 1, message }]);
    await cluster.settle();
    await cluster.tick(HEARTBEAT_TICKS);
    const now = leader.status;
    expect(now.role).toBe('leader');
    expect(now.term).toBeGreaterThan(term);
    expect(follower.app.status).toEqual({ isLeader: false, term: now.term, leader: leader.id });
  });

  it('takes a few ticks when the connection of the leader breaks', async () => {
    const cluster = new Cluster({ voters: 3, groups: 4 });
    const leaders = new Set<number>();
    for (const group of cluster.groups) leaders.add((await cluster.elect(group)).id);
    const [dead] = leaders;
    expect(dead).toBeDefined();
    if (dead === undefined) return;
    cluster.node(dead).crash();
    for (const node of cluster.up) node.raft.peerLost(dead);
    await cluster.tick(2 + 2 * HEARTBEAT_TICKS);
    for (const group of cluster.groups) expect(cluster.leaderOf(group)).toBeDefined();
  });
});
