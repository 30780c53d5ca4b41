/** A group that was reported as settled stays so, even if a node that missed all news leads it next. */
import { describe, expect, it } from 'vitest';
import type { ClusterPlacement } from '../../src/meta/cluster-placement.ts';
import { GroupMover } from '../../src/meta/group-mover.ts';
import type { MetaGroup } from '../../src/meta/meta-group.ts';
import { Offers } from '../../src/meta/offers.ts';
import { Cluster } from '../raft/driver/cluster.ts';
import type { Node } from '../raft/driver/node.ts';
import { GROUP } from '../raft/driver/options.ts';

const CHECK_TICKS = 10;

interface Reports {
  readonly mover: GroupMover;
  readonly reported: number[];
}

/** The mover on `node`, which knows `version` of the nodes and nothing later. */
function moverOn(node: Node, version: number, voters: readonly number[]): Reports {
  const reported: number[] = [];
  const state = { version, settledVersion: 1, nodes: [], settledNodes: [], leaving: [], retired: [] };
  const offers = new Offers(() => true);
  for (const id of voters) offers.offered(id, version, [GROUP]);
  const mover = new GroupMover({
    raft: node.raft,
    meta: { state, isLeader: false, leader: 9 } as unknown as MetaGroup,
    placement: {
      partitionCount: 1,
      membersOf: () => ({ voters, learners: [] }),
    } as unknown as ClusterPlacement,
    offers,
    isConnected: () => true,
    groups: () => [GROUP],
    report: (_to, answered) => reported.push(answered),
  });
  return { mover, reported };
}

async function peek(cluster: Cluster, ...movers: readonly Reports[]): Promise<void> {
  for (let i = 0; i < 8 * CHECK_TICKS; i += 1) {
    for (const { mover } of movers) mover.tick();
    await cluster.tick();
  }
}

describe('a group that was reported as settled', () => {
  it('is not moved by a leader that has only heard of a version in between', async () => {
    const cluster = new Cluster({ voters: 3 });
    cluster.add(4);
    const first = await cluster.elect();
    // Node 4 was added, which moves the group there, and removed before anything had moved.
    const informed = moverOn(first, 3, [1, 2, 3]);
    await peek(cluster, informed);
    expect(informed.reported).toContain(3);
    // An operator may now switch node 4 off.
    first.raft.handOver();
    await cluster.until(() => !first.isLeader);
    const second = await cluster.elect();
    expect(second).not.toBe(first);
    const late = moverOn(second, 2, [second.id, first.id, 4]);
    await peek(cluster, late);
    const { voters, learners } = second.status.config;
    expect([...voters, ...learners]).toEqual([1, 2, 3]);
    expect(late.reported).toEqual([]);
  });

  it('is not reported as settled by a leader that was deposed without noticing', async () => {
    const cluster = new Cluster({ voters: 3 });
    cluster.add(4);
    const before = await cluster.elect();
    const others = [1, 2, 3].filter((id) => id !== before.id);
    // Its process is paused, so it still believes that it leads.
    cluster.nodes.delete(before.id);
    for (const id of others) cluster.node(id).raft.peerLost(before.id);
    const after = await cluster.elect();
    const moved = moverOn(after, 2, [...others, 4]);
    await peek(cluster, moved);
    expect(after.status.config.voters).toContain(4);
    expect(moved.reported).toContain(2);
    // It goes on, and hears from group 0 that node 4 leaves, but nothing from its own group yet.
    const woken = moverOn(before, 3, [1, 2, 3]);
    for (let i = 0; i < CHECK_TICKS; i += 1) woken.mover.tick();
    expect(before.isLeader).toBe(true);
    expect(woken.reported).toEqual([]);
  });
});
