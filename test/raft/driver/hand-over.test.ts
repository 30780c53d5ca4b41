/** Leaders that hand over: to whom, how soon, and what becomes of what is proposed meanwhile. */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../../raft/types.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS, type Node, type Parcel, World } from './members.ts';

const typeOf = ({ message }: Parcel): string =>
  message.kind === 'message' ? message.message.type : message.kind;

function otherThan(world: World, ...nodes: readonly Node[]): Node {
  const other = world.up.find((node) => !nodes.includes(node));
  if (other === undefined) throw new Error('there is another node');
  return other;
}

function prefer(world: World, id: NodeId): void {
  for (const node of world.up) node.raft.preferLeader(GROUP, id);
}

describe('a preferred leader whose disk is almost full', () => {
  it('is not handed the lead again and again: proposals wait for nobody', async () => {
    const world = new World({ voters: 3, options: { balanceTicks: HEARTBEAT_TICKS } });
    const leader = await world.elect();
    const preferred = otherThan(world, leader);
    preferred.raft.avoidLeading('lowDisk', true);
    await world.tick(2 * HEARTBEAT_TICKS);
    prefer(world, preferred.id);
    world.sent.length = 0;
    for (let i = 0; i < 100; i += 1) {
      leader.propose(`p${i}`);
      await world.tick();
      expect(leader.app.commands.at(-1)).toBe(`p${i}`);
    }
    expect(world.sent.filter((parcel) => typeOf(parcel) === 'timeoutNow')).toEqual([]);
    // It is handed the lead when there is room again.
    preferred.raft.avoidLeading('lowDisk', false);
    await world.until(() => preferred.isLeader);
  });

  it.each([true, false])(
    'does not replace a leader that crashed if somebody else can, whether the connection broke: %s',
    async (isLost) => {
      for (let seed = 1; seed <= 20; seed += 1) {
        const world = new World({ voters: 3, seed });
        const leader = await world.elect();
        await world.commit('a', [1, 2, 3]);
        const preferred = otherThan(world, leader);
        prefer(world, preferred.id);
        preferred.raft.avoidLeading('lowDisk', true);
        await world.tick(2 * HEARTBEAT_TICKS);
        leader.crash();
        if (isLost) for (const { raft } of world.up) raft.peerLost(leader.id);
        await world.until(() => world.leader !== undefined);
        expect(world.leader?.id).not.toBe(preferred.id);
      }
    },
  );

  it('says so when it is asked, before its leader knows: the leader goes on at once', async () => {
    const world = new World({ voters: 3, options: { balanceTicks: 1 } });
    const leader = await world.elect();
    const preferred = otherThan(world, leader);
    // No heartbeat has told of it.
    preferred.raft.avoidLeading('lowDisk', true);
    prefer(world, preferred.id);
    world.passes = (parcel) => typeOf(parcel) !== 'heartbeat';
    await world.tick();
    expect(world.sent.some((parcel) => typeOf(parcel) === 'timeoutNow')).toBe(true);
    world.heal();
    leader.propose('at once');
    await world.settle();
    expect(leader.app.commands).toContain('at once');
    expect(leader.isLeader).toBe(true);
  });
});

describe('a hand-over that nobody takes over', () => {
  it('ends: what was asked meanwhile is proposed then, without being asked again', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const { term } = leader.status;
    world.passes = (parcel) => typeOf(parcel) !== 'timeoutNow';
    leader.raft.handOver();
    await world.settle();
    leader.propose('meanwhile');
    await world.tick();
    expect(leader.app.commands).toEqual([]);
    await world.tick(ELECTION_TICKS);
    expect(leader.app.commands).toEqual(['meanwhile']);
    expect(leader.status).toMatchObject({ role: 'leader', term });
  });
});

describe('a node that is not fit to lead', () => {
  it('hands over at once, and campaigns no more until it is fit again', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    leader.raft.avoidLeading('clockRate', true);
    await world.settle();
    expect(leader.isLeader).toBe(false);
    const successor = await world.elect();
    expect(successor.id).not.toBe(leader.id);
    // Neither a hand-over nor the loss of every other leader makes it one.
    successor.raft.handOver();
    await world.tick(2 * ELECTION_TICKS);
    const last = await world.elect();
    expect(last.id).not.toBe(leader.id);
    world.sent.length = 0;
    world.isolate(leader.id);
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter(({ from }) => from === leader.id).map(typeOf)).not.toContain('preVote');
    leader.raft.avoidLeading('clockRate', false);
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter(({ from }) => from === leader.id).map(typeOf)).toContain('preVote');
    world.heal();
    await world.commit('b', [1, 2, 3]);
  });

  it('proposes nothing more, and leads for an election timeout at most if nobody takes over', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    // All are reluctant, so nobody is asked to take over.
    for (const node of world.up) if (node !== leader) node.raft.avoidLeading('lowDisk', true);
    await world.tick(2 * HEARTBEAT_TICKS);
    leader.raft.avoidLeading('clockRate', true);
    const { lastIndex } = leader.status;
    leader.propose('refused');
    await world.settle();
    expect(leader.isLeader).toBe(true);
    expect(leader.status.lastIndex).toBe(lastIndex);
    await world.tick(ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    // The others lead although they would rather not.
    await world.until(() => world.leader !== undefined);
    expect(world.leader?.id).not.toBe(leader.id);
  });

  it('may be so for several reasons: each ends by itself', async () => {
    const world = new World({ voters: 1 });
    const leader = await world.elect();
    leader.raft.avoidLeading('clockRate', true);
    leader.raft.avoidLeading('lowDisk', true);
    await world.tick(ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    leader.raft.avoidLeading('lowDisk', false);
    await world.tick(5 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
    leader.raft.avoidLeading('clockRate', false);
    await world.commit('b');
  });
});

describe('a node that stops', () => {
  it('hands over although entries are in flight: its successor has them first', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    const late: Parcel[] = [];
    let isSlow = true;
    world.passes = (parcel) => {
      const isHeld = isSlow && typeOf(parcel) === 'append';
      if (isHeld) late.push(parcel);
      return !isHeld;
    };
    leader.propose('in flight');
    await world.settle();
    leader.raft.avoidLeading('stopping', true);
    await world.settle();
    expect(leader.isLeader).toBe(true);
    isSlow = false;
    for (const parcel of late.splice(0)) world.deliver(parcel);
    await world.settle();
    expect(leader.raft.leaderships).toBe(0);
    const successor = await world.elect();
    expect(successor.app.commands).toContain('in flight');
  });

  it('asks another when the one it chose does not take over', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    // What it is told is lost on the way to whoever is asked first.
    let first: NodeId | undefined;
    world.passes = (parcel) => {
      if (typeOf(parcel) !== 'timeoutNow') return true;
      first ??= parcel.to;
      return parcel.to !== first;
    };
    leader.raft.avoidLeading('stopping', true);
    for (let i = 0; i < 2 * ELECTION_TICKS && leader.isLeader; i += 1) {
      leader.raft.handOver();
      await world.tick();
    }
    expect(leader.isLeader).toBe(false);
    expect((await world.elect()).id).not.toBe(first);
  });

  it('asks another at once when the connection of the one it chose breaks', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    world.passes = (parcel) => typeOf(parcel) !== 'timeoutNow';
    leader.raft.handOver();
    await world.settle();
    const [asked] = world.sent.filter((parcel) => typeOf(parcel) === 'timeoutNow').map(({ to }) => to);
    world.heal();
    world.node(asked ?? 0).crash();
    leader.raft.peerLost(asked ?? 0);
    leader.raft.handOver();
    await world.settle();
    expect(leader.isLeader).toBe(false);
  });

  it('knows within a heartbeat when nobody could take over, because all others stop too', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    expect(leader.raft.canHandOver).toBe(true);
    expect(world.node(otherThan(world, leader).id).raft.canHandOver).toBe(false);
    for (const id of [1, 2, 3]) world.node(id).raft.avoidLeading('stopping', true);
    await world.until(() => !leader.raft.canHandOver);
    expect(leader.isLeader).toBe(true);
  });

  it('is not handed back what it should lead', async () => {
    const world = new World({ voters: 3, options: { balanceTicks: 1 } });
    const leader = await world.elect();
    prefer(world, leader.id);
    await world.commit('a', [1, 2, 3]);
    leader.raft.avoidLeading('stopping', true);
    await world.until(() => !leader.isLeader && world.leader !== undefined);
    await world.tick(10 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
  });

  it('notices that it is cut off, however often it is asked to hand over', async () => {
    const world = new World({ voters: 5 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3, 4, 5]);
    world.isolate(leader.id);
    for (let i = 0; i < 3 * ELECTION_TICKS; i += 1) {
      leader.raft.handOver();
      await world.tick();
    }
    expect(leader.isLeader).toBe(false);
  });
});
