/** Rounds of proposals: the groups that propose together, and the condition for the next round. */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { HEARTBEAT_TICKS } from './options.ts';
import { groupOf, typeOf } from './parcel.ts';

/** One node leads these groups. */
async function leadingAll(groups: number): Promise<{ readonly cluster: Cluster; readonly leader: Node }> {
  const cluster = new Cluster({ voters: 3, groups, options: { balanceTicks: HEARTBEAT_TICKS } });
  const leader = await cluster.elect();
  for (const { raft } of cluster.up) for (const group of cluster.groups) raft.preferLeader(group, leader.id);
  await cluster.until(() => cluster.groups.every((group) => leader.leads(group)));
  return { cluster, leader };
}

function lastIndexes(node: Node, groups: readonly number[]): number[] {
  return groups.map((group) => node.statusOf(group).lastIndex);
}

describe('rounds of proposals', () => {
  it('a group proposes when the entry of the other group is applied, not when it is written', async () => {
    const { cluster, leader } = await leadingAll(2);
    const [first = 0, second = 0] = lastIndexes(leader, cluster.groups);
    leader.propose('a', 1);
    leader.turn();
    leader.sync();
    leader.propose('b', 2);
    leader.turn();
    expect(lastIndexes(leader, cluster.groups)).toEqual([first + 1, second]);
    await cluster.settle();
    expect(leader.appOf(2).commands.at(-1)).toBe('b');
  });

  it('commands that came meanwhile are one entry of each group, in one write', async () => {
    const { cluster, leader } = await leadingAll(2);
    leader.propose('a', 1);
    leader.turn();
    for (let i = 0; i < 5; i += 1) {
      leader.propose(`p${i}`, 1);
      leader.propose(`q${i}`, 2);
    }
    leader.store.writes.length = 0;
    await cluster.settle();
    expect(leader.appOf(1).commands.at(-1)).toBe('p0,p1,p2,p3,p4');
    expect(leader.appOf(2).commands.at(-1)).toBe('q0,q1,q2,q3,q4');
    const written = leader.store.writes.filter((write) => write.some(({ entries }) => entries.length > 0));
    expect(written.map((write) => write.map(({ group }) => group))).toEqual([[1, 2]]);
  });

  it('a client that the round answers may ask again before the next round begins', async () => {
    const { cluster, leader } = await leadingAll(1);
    leader.propose('a');
    leader.turn();
    leader.propose('b');
    cluster.deliverAll();
    for (const node of cluster.up) {
      while (node.hasTurn) node.turn();
      if (node.isWriting) node.sync();
    }
    // The turn that applies 'a' proposes nothing: the clients that it answers come first.
    cluster.deliverAll();
    leader.turn();
    expect(leader.app.commands.at(-1)).toBe('a');
    leader.propose('c');
    await cluster.settle();
    expect(leader.app.commands.at(-1)).toBe('b,c');
  });

  it('a group without a quorum holds the others up for two ticks, and only once', async () => {
    const { cluster, leader } = await leadingAll(2);
    cluster.hold((parcel) => groupOf(parcel) === 1 && typeOf(parcel) === 'append');
    leader.propose('stuck', 1);
    await cluster.settle();
    leader.propose('b', 2);
    await cluster.tick();
    expect(leader.appOf(2).commands.at(-1)).not.toBe('b');
    await cluster.tick();
    expect(leader.appOf(2).commands.at(-1)).toBe('b');
    leader.propose('stuck too', 1);
    await cluster.settle();
    leader.propose('c', 2);
    await cluster.settle();
    expect(leader.appOf(2).commands.at(-1)).toBe('c');
  });

  it('a group that was late is waited for again when it has caught up', async () => {
    const { cluster, leader } = await leadingAll(2);
    cluster.hold((parcel) => groupOf(parcel) === 1 && typeOf(parcel) === 'append');
    leader.propose('late', 1);
    await cluster.tick(2);
    cluster.heal();
    await cluster.until(() => leader.appOf(1).commands.at(-1) === 'late');
    const [, second = 0] = lastIndexes(leader, cluster.groups);
    leader.propose('a', 1);
    leader.turn();
    leader.sync();
    leader.propose('b', 2);
    leader.turn();
    expect(leader.statusOf(2).lastIndex).toBe(second);
    await cluster.settle();
    expect(leader.appOf(2).commands.at(-1)).toBe('b');
  });

  it('a group that has left the node is not waited for', async () => {
    const { cluster, leader } = await leadingAll(2);
    cluster.hold((parcel) => groupOf(parcel) === 1 && typeOf(parcel) === 'append');
    leader.propose('stuck', 1);
    await cluster.settle();
    leader.remove(1);
    leader.propose('b', 2);
    await cluster.settle();
    expect(leader.appOf(2).commands.at(-1)).toBe('b');
  });
});
