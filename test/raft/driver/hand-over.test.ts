/** Leaders that hand over: the choice of the successor, the time it takes, and proposals that arrive meanwhile. */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../../raft/types.ts';
import { Cluster } from './cluster.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { typeOf } from './parcel.ts';

function prefer(cluster: Cluster, id: NodeId): void {
  for (const node of cluster.up) node.raft.preferLeader(GROUP, id);
}

describe('another preferred leader', () => {
  it('gets the leadership at once, also if this node handed it to others just before', async () => {
    const cluster = new Cluster({ voters: 3, options: { balanceTicks: HEARTBEAT_TICKS } });
    const first = await cluster.elect();
    const second = cluster.otherThan(first);
    const third = cluster.otherThan(first, second);
    for (const { id } of [second, first, third]) {
      prefer(cluster, id);
      await cluster.tick(4 * HEARTBEAT_TICKS);
      expect(cluster.leader?.id).toBe(id);
    }
  });
});

describe('a preferred leader whose disk is almost full', () => {
  it('is not asked to lead again and again, which would delay proposals', async () => {
    const cluster = new Cluster({ voters: 3, options: { balanceTicks: HEARTBEAT_TICKS } });
    const leader = await cluster.elect();
    const preferred = cluster.otherThan(leader);
    preferred.raft.avoidLeading('lowDisk', true);
    await cluster.tick(2 * HEARTBEAT_TICKS);
    prefer(cluster, preferred.id);
    cluster.sent.length = 0;
    for (let i = 0; i < 100; i += 1) {
      leader.propose(`p${i}`);
      await cluster.tick();
      expect(leader.app.commands.at(-1)).toBe(`p${i}`);
    }
    expect(cluster.sent.filter((parcel) => typeOf(parcel) === 'timeoutNow')).toEqual([]);
    // It gets the leadership when its disk has room again.
    preferred.raft.avoidLeading('lowDisk', false);
    await cluster.until(() => preferred.isLeader);
  });

  it.each([true, false])(
    'does not replace a leader that crashed if another node can; the connection broke: %s',
    async (isLost) => {
      for (let seed = 1; seed <= 20; seed += 1) {
        const cluster = new Cluster({ voters: 3, seed });
        const leader = await cluster.elect();
        await cluster.commit('a', [1, 2, 3]);
        const preferred = cluster.otherThan(leader);
        prefer(cluster, preferred.id);
        preferred.raft.avoidLeading('lowDisk', true);
        await cluster.tick(2 * HEARTBEAT_TICKS);
        leader.crash();
        if (isLost) for (const { raft } of cluster.up) raft.peerLost(leader.id);
        await cluster.until(() => cluster.leader !== undefined);
        expect(cluster.leader?.id).not.toBe(preferred.id);
      }
    },
  );

  it('refuses a hand-over that the leader began before it knew, and the leader goes on at once', async () => {
    const cluster = new Cluster({ voters: 3, options: { balanceTicks: 1 } });
    const leader = await cluster.elect();
    const preferred = cluster.otherThan(leader);
    // No heartbeat answer has reported it.
    preferred.raft.avoidLeading('lowDisk', true);
    prefer(cluster, preferred.id);
    cluster.passes = (parcel) => typeOf(parcel) !== 'heartbeat';
    await cluster.tick();
    expect(cluster.sent.some((parcel) => typeOf(parcel) === 'timeoutNow')).toBe(true);
    cluster.heal();
    leader.propose('at once');
    await cluster.settle();
    expect(leader.app.commands).toContain('at once');
    expect(leader.isLeader).toBe(true);
  });
});

describe('a hand-over that no node accepts', () => {
  it('ends: requests that came meanwhile are then proposed, and clients need not repeat them', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const { term } = leader.status;
    cluster.passes = (parcel) => typeOf(parcel) !== 'timeoutNow';
    leader.raft.handOver();
    await cluster.settle();
    leader.propose('meanwhile');
    await cluster.tick();
    expect(leader.app.commands).toEqual([]);
    await cluster.tick(ELECTION_TICKS);
    expect(leader.app.commands).toEqual(['meanwhile']);
    expect(leader.status).toMatchObject({ role: 'leader', term });
  });
});

describe('a node that is not fit to lead', () => {
  it('hands over at once, and campaigns no more until it is fit again', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    leader.raft.avoidLeading('clockRate', true);
    await cluster.settle();
    expect(leader.isLeader).toBe(false);
    const successor = await cluster.elect();
    expect(successor.id).not.toBe(leader.id);
    // Neither a hand-over nor the loss of every other leader makes it one.
    successor.raft.handOver();
    await cluster.tick(2 * ELECTION_TICKS);
    const last = await cluster.elect();
    expect(last.id).not.toBe(leader.id);
    cluster.sent.length = 0;
    cluster.isolate(leader.id);
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter(({ from }) => from === leader.id).map(typeOf)).not.toContain('preVote');
    leader.raft.avoidLeading('clockRate', false);
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter(({ from }) => from === leader.id).map(typeOf)).toContain('preVote');
    cluster.heal();
    await cluster.commit('b', [1, 2, 3]);
  });

  it('proposes nothing more, and leads for at most an election timeout if no node takes over', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    // All other nodes are reluctant, so none is asked to take over.
    for (const node of cluster.up) if (node !== leader) node.raft.avoidLeading('lowDisk', true);
    await cluster.tick(2 * HEARTBEAT_TICKS);
    leader.raft.avoidLeading('clockRate', true);
    const { lastIndex } = leader.status;
    leader.propose('refused');
    await cluster.settle();
    expect(leader.isLeader).toBe(true);
    expect(leader.status.lastIndex).toBe(lastIndex);
    await cluster.tick(ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    // The others now lead, although they are reluctant.
    await cluster.until(() => cluster.leader !== undefined);
    expect(cluster.leader?.id).not.toBe(leader.id);
  });

  it('may have several reasons, each of which ends separately', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    leader.raft.avoidLeading('clockRate', true);
    leader.raft.avoidLeading('lowDisk', true);
    await cluster.tick(ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    leader.raft.avoidLeading('lowDisk', false);
    await cluster.tick(5 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    leader.raft.avoidLeading('clockRate', false);
    await cluster.commit('b');
  });
});

describe('a node that stops', () => {
  it('hands over while entries are in flight: its successor gets them first', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    const late = cluster.hold((parcel) => typeOf(parcel) === 'append');
    leader.propose('in flight');
    await cluster.settle();
    leader.raft.avoidLeading('stopping', true);
    await cluster.settle();
    expect(leader.isLeader).toBe(true);
    cluster.heal();
    for (const parcel of late) cluster.deliver(parcel);
    await cluster.settle();
    expect(leader.raft.leaderships).toBe(0);
    const successor = await cluster.elect();
    expect(successor.app.commands).toContain('in flight');
  });

  it('asks another node when the chosen one does not take over', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    // The request to the first chosen node is lost.
    let first: NodeId | undefined;
    cluster.passes = (parcel) => {
      if (typeOf(parcel) !== 'timeoutNow') return true;
      first ??= parcel.to;
      return parcel.to !== first;
    };
    leader.raft.avoidLeading('stopping', true);
    for (let i = 0; i < 2 * ELECTION_TICKS && leader.isLeader; i += 1) {
      leader.raft.handOver();
      await cluster.tick();
    }
    expect(leader.isLeader).toBe(false);
    expect((await cluster.elect()).id).not.toBe(first);
  });

  it('asks another node at once when the connection to the chosen one breaks', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    cluster.passes = (parcel) => typeOf(parcel) !== 'timeoutNow';
    leader.raft.handOver();
    await cluster.settle();
    const [asked] = cluster.sent.filter((parcel) => typeOf(parcel) === 'timeoutNow').map(({ to }) => to);
    cluster.heal();
    cluster.node(asked ?? 0).crash();
    leader.raft.peerLost(asked ?? 0);
    leader.raft.handOver();
    await cluster.settle();
    expect(leader.isLeader).toBe(false);
  });

  it('knows within a heartbeat that no node can take over, if all others stop too', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    expect(leader.raft.canHandOver).toBe(true);
    expect(cluster.otherThan(leader).raft.canHandOver).toBe(false);
    for (const id of [1, 2, 3]) cluster.node(id).raft.avoidLeading('stopping', true);
    await cluster.until(() => !leader.raft.canHandOver);
    expect(leader.isLeader).toBe(true);
  });

  it('does not get back the groups that it should lead', async () => {
    const cluster = new Cluster({ voters: 3, options: { balanceTicks: 1 } });
    const leader = await cluster.elect();
    prefer(cluster, leader.id);
    await cluster.commit('a', [1, 2, 3]);
    leader.raft.avoidLeading('stopping', true);
    await cluster.until(() => !leader.isLeader && cluster.leader !== undefined);
    await cluster.tick(10 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
  });

  it('notices that it is cut off, even if it is asked again and again to hand over', async () => {
    const cluster = new Cluster({ voters: 5 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3, 4, 5]);
    cluster.isolate(leader.id);
    for (let i = 0; i < 3 * ELECTION_TICKS; i += 1) {
      leader.raft.handOver();
      await cluster.tick();
    }
    expect(leader.isLeader).toBe(false);
  });
});
