/**
 * A node whose disk is almost full can propose nothing. It must hand over its leaderships, or its groups would decide
 * nothing.
 */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import { ELECTION_TICKS } from './options.ts';

describe('a leader that avoids leading', () => {
  it('hands over to a node that does not avoid leading, and takes no leadership back', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    leader.raft.avoidLeading('lowDisk', true);
    await cluster.settle();
    await cluster.tick(2);
    expect(leader.isLeader).toBe(false);
    const successor = [1, 2, 3].map((id) => cluster.node(id)).find(({ isLeader }) => isLeader);
    expect(successor).toBeDefined();
    successor?.raft.handOver();
    await cluster.settle();
    await cluster.tick(2 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    await cluster.commit('b', [1, 2, 3]);
  });

  it('goes on leading if no other node can: members can still be changed', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    for (const id of [1, 2, 3]) cluster.node(id).raft.avoidLeading('lowDisk', true);
    await cluster.tick(2 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(true);
    await cluster.commit('b', [1, 2, 3]);
  });

  it('notices that it is cut off, even if it is asked again and again to avoid leading', async () => {
    const cluster = new Cluster({ voters: 5 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3, 4, 5]);
    for (const { raft } of cluster.up) raft.avoidLeading('lowDisk', true);
    await cluster.settle();
    cluster.isolate(leader.id);
    for (let i = 0; i < 10 * ELECTION_TICKS; i += 1) {
      leader.raft.avoidLeading('lowDisk', true);
      await cluster.tick();
    }
    expect(leader.isLeader).toBe(false);
  });
});
