/**
 * Replicas that are removed from a node, and come back: what they promised before must neither be needed nor believed.
 * The versions of the placement are those of raft/README.md, "Removing a replica".
 */
import { describe, expect, it } from 'vitest';
import { decodeConfig } from '../../raft/membership.ts';
import type { Message, NodeId } from '../../raft/types.ts';
import { ELECTION_TICKS, GROUP, type Node, type Parcel, World } from './driver/members.ts';

const messageOf = ({ message }: Parcel): Message | undefined =>
  message.kind === 'message' ? message.message : undefined;

/** Moves the group from `leaving` to as many new nodes, in the name of `epoch`. */
async function move(
  world: World,
  leaving: readonly NodeId[],
  entering: readonly NodeId[],
  epoch: number,
): Promise<void> {
  for (const id of entering) {
    if (!world.nodes.has(id)) world.add(id);
    await world.changed([{ kind: 'addLearner', node: id }], epoch);
  }
  await world.commit(`for ${entering.join(' ')}`, entering);
  await world.changed(
    [
      ...entering.map((node) => ({ kind: 'promote', node }) as const),
      ...leaving.map((node) => ({ kind: 'remove', node }) as const),
    ],
    epoch,
  );
}

interface Moved {
  readonly world: World;
  /** Knows nothing of the move, or only that it begins. */
  readonly asleep: Node;
  /** The other two of the first three, removed by placement 1. */
  readonly first: Node;
  readonly second: Node;
}

/** Begins to replace voters: its configuration is joint. */
function beginsMove(parcel: Parcel): boolean {
  const message = messageOf(parcel);
  if (message?.type !== 'append') return false;
  const configs = message.entries.filter(({ kind }) => kind === 'config');
  return configs.some(({ data }) => decodeConfig(data)?.outgoing.length !== 0);
}

/**
 * The group of node 1 moves to 2, 3 and 4. One of them sleeps while it moves on to 5, 6 and 7: all the time, or from when
 * it has the entry that begins the move on its disk.
 */
async function movedAway(sleeps: 'all the time' | 'soon' = 'all the time'): Promise<Moved> {
  const world = new World({ voters: 1 });
  await move(world, [1], [2, 3, 4], 0);
  world.node(1).crash();
  await world.commit('a', [2, 3, 4]);
  const leader = await world.elect();
  const [second, asleep] = [2, 3, 4].filter((id) => id !== leader.id).map((id) => world.node(id));
  const first = leader;
  if (second === undefined || asleep === undefined) throw new Error('three nodes');
  if (sleeps === 'all the time') asleep.crash();
  for (let i = 0; i < 5; i += 1) await world.commit(`b${i}`, [first.id, second.id]);
  let isDeaf = false;
  world.passes = (parcel) => {
    if (parcel.to !== asleep.id) return true;
    const isHeard = !isDeaf;
    isDeaf ||= beginsMove(parcel);
    return isHeard;
  };
  await move(world, [2, 3, 4], [5, 6, 7], 1);
  world.heal();
  if (sleeps === 'soon') asleep.crash();
  for (const node of [first, second]) node.remove(1);
  await world.settle();
  return { world, first, second, asleep };
}

/** In an election: as a candidate, or for one. */
function takesPart(message: Message): boolean {
  return message.type === 'preVote' || message.type === 'vote' || ('granted' in message && message.granted);
}

/** These reach only each other. */
async function expectNobodyElected(world: World, nodes: readonly Node[]): Promise<void> {
  world.isolate(...nodes.map(({ id }) => id));
  for (let i = 0; i < 10 * ELECTION_TICKS; i += 1) {
    await world.tick();
    for (const node of nodes) expect(node.isLeader).toBe(false);
  }
}

describe('a replica that is removed', () => {
  it('leaves a tombstone with a term it never was in, also after a restart', async () => {
    const { world, first: node } = await movedAway();
    const { term } = node.tombstone?.hardState ?? { term: 0 };
    expect(node.holdsGroup).toBe(false);
    expect(node.disk.get(GROUP)).toMatchObject({
      removed: true,
      removedAt: 1,
      placement: 1,
      hardState: { vote: 0, commit: 0 },
      entries: [],
    });
    const spokenOf = world.sent.map((parcel) =>
      parcel.from === node.id ? (messageOf(parcel)?.term ?? 0) : 0,
    );
    expect(term).toBeGreaterThan(Math.max(...spokenOf));
    node.crash();
    node.start();
    expect(node.tombstone).toMatchObject({ removedAt: 1, hardState: { term } });
    await world.tick(5 * ELECTION_TICKS);
    await world.commit('c', [5, 6, 7]);
  });

  it('says nothing more, not even what waited for the disk, and hears nothing', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const follower = world.node(leader.id === 1 ? 2 : 1);
    world.stalled.add(follower.id);
    leader.propose('x');
    await world.settle();
    expect(follower.isWriting).toBe(true);
    world.sent.length = 0;
    const { index } = follower.app;
    follower.remove(1);
    world.stalled.clear();
    await world.settle();
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter(({ from }) => from === follower.id)).toEqual([]);
    expect(follower.app.index).toBe(index);
    expect(follower.tombstone).toBeDefined();
  });

  it.each(['lost', 'kept'] as const)(
    'and crashes before that is on disk (%s) is there or is gone',
    async (fate) => {
      const world = new World({ voters: 3 });
      await world.commit('a', [1, 2, 3]);
      const node = world.node(1);
      world.stalled.add(1);
      node.remove(1);
      await world.settle();
      expect(node.isWriting).toBe(true);
      expect(node.tombstone).toBeUndefined();
      node.crash(fate);
      world.stalled.clear();
      node.start();
      expect(node.holdsGroup).toBe(fate === 'lost');
      expect(node.tombstone !== undefined).toBe(fate === 'kept');
    },
  );

  it('tells those who wait that it is lost', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.isolate(leader.id);
    const reads: (number | undefined)[] = [];
    leader.raft.readIndex(GROUP, (index) => reads.push(index));
    await world.settle();
    leader.raft.readIndex(GROUP, (index) => reads.push(index));
    const began = world.change(leader, [{ kind: 'addLearner', node: 9 }]);
    await world.settle();
    const asked = world.change(leader, [{ kind: 'addLearner', node: 8 }]);
    leader.remove(1);
    expect(reads).toEqual([undefined, undefined]);
    expect(began.result).toEqual({ ok: false, reason: 'unknownOutcome' });
    expect(asked.result).toEqual({ ok: false, reason: 'notLeader' });
  });

  it('comes back only by a placement above the one that removed it', async () => {
    const { world, first, second } = await movedAway();
    expect(() => first.comeBack(1)).toThrow(/was removed by placement 1/);
    second.comeBack(2);
    await world.settle();
    expect(second.disk.get(GROUP)).toMatchObject({ removed: false, removedAt: 1, placement: 2 });
  });
});

describe('a replica that came back', () => {
  it('elects nobody who slept while the group moved: it has forgotten what it helped to decide', async () => {
    const { world, first, second, asleep } = await movedAway();
    await world.commit('granted', [5, 6, 7]);
    // The two are to be members again, and nobody has added them yet. The third wakes up, and reaches only them.
    for (const node of [first, second]) node.comeBack(2);
    asleep.start();
    await expectNobodyElected(world, [first, second, asleep]);
    world.heal();
    await world.commit('and on', [5, 6, 7]);
  });

  it.each(['more', 'less'])(
    'elects nobody either, nor itself, with a part of the old log: %s',
    async (amount) => {
      const { world, first, asleep } = await movedAway();
      const known = asleep.disk.get(GROUP)?.entries.length ?? 0;
      const count = amount === 'more' ? known + 1 : known - 1;
      first.comeBack(2);
      // A leader of the new members adds it again, and the connection breaks after a part of the first append.
      world.passes = (parcel) => {
        const message = messageOf(parcel);
        if (parcel.to !== first.id || message?.type !== 'append' || message.entries.length === 0) return true;
        if (message.prevIndex > 0) return false;
        const part = { ...message, entries: message.entries.slice(0, count), commit: count };
        first.raft.receive([{ kind: 'message', group: GROUP, message: part }]);
        return false;
      };
      await world.changed([{ kind: 'addLearner', node: first.id }], 2);
      await world.tick(ELECTION_TICKS);
      expect(first.status).toMatchObject({ lastIndex: count, config: { voters: [2, 3, 4] } });
      asleep.start();
      await expectNobodyElected(world, [first, asleep]);
    },
  );

  it.each(['applied', 'not applied'] as const)(
    'takes no part in elections when the newest configuration it holds is the one that removed it: %s',
    async (state) => {
      const { world, first, asleep } = await movedAway('soon');
      const lastIndex = asleep.disk.get(GROUP)?.entries.at(-1)?.index ?? 0;
      first.comeBack(2);
      // Its log ends where that of the sleeper does: it hears nothing after that part of the first append.
      let isDeaf = false;
      world.passes = (parcel) => {
        if (parcel.to !== first.id) return true;
        if (isDeaf) return false;
        const message = messageOf(parcel);
        if (message?.type !== 'append' || message.entries.length === 0) return true;
        if (message.prevIndex > 0) return false;
        isDeaf = true;
        const entries = message.entries.slice(0, lastIndex);
        const commit = state === 'applied' ? lastIndex : lastIndex - 1;
        first.raft.receive([{ kind: 'message', group: GROUP, message: { ...message, entries, commit } }]);
        return false;
      };
      await world.changed([{ kind: 'addLearner', node: first.id }], 2);
      await world.tick(ELECTION_TICKS);
      expect(first.status.lastIndex).toBe(lastIndex);
      expect(first.raft.newestEpoch(GROUP)).toBe(1);
      expect(first.status.config.outgoing).toEqual(state === 'applied' ? [2, 3, 4] : []);
      world.sent.length = 0;
      asleep.start();
      await expectNobodyElected(world, [first, asleep]);
      const said = world.sent.filter(({ from }) => from === first.id).map(messageOf);
      const asked = world.sent.filter(({ from, to }) => from === asleep.id && to === first.id).map(messageOf);
      expect(asked.some((message) => message?.type === 'preVote')).toBe(true);
      expect(said.filter((message) => message !== undefined && takesPart(message))).toEqual([]);
    },
  );

  it('votes when it has caught up: its vote may be needed', async () => {
    const { world, first } = await movedAway();
    first.comeBack(2);
    await move(world, [5, 6, 7], [first.id], 2);
    expect((await world.elect()).id).toBe(first.id);
    await world.commit('alone', [first.id]);
    expect(first.status.config).toMatchObject({ epoch: 2, voters: [first.id], outgoing: [] });
  });

  it('is promoted only when it has on disk that it is a member, however short the log is', async () => {
    const world = new World({ voters: 1 });
    await world.elect();
    world.add(2);
    // It answers, and no append reaches it.
    world.passes = (parcel) => !(parcel.to === 2 && messageOf(parcel)?.type === 'append');
    await world.changed([{ kind: 'addLearner', node: 2 }]);
    await world.tick(2 * ELECTION_TICKS);
    const leader = await world.elect();
    const answer = world.change(leader, [{ kind: 'promote', node: 2 }]);
    await world.settle();
    expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
  });

  it('is not stopped by what a leader remembers of its former life', async () => {
    const world = new World({ voters: 4 });
    await world.commit('a', [1, 2, 3, 4]);
    const leader = await world.elect();
    const node = world.node((leader.id % 4) + 1);
    // A heartbeat that tells of what it has acknowledged is late.
    const late: Parcel[] = [];
    world.passes = (parcel) => {
      const message = messageOf(parcel);
      const isHeld = parcel.to === node.id && message?.type === 'heartbeat' && (message.match ?? 0) > 0;
      if (isHeld) late.push(parcel);
      return !isHeld;
    };
    await world.tick(ELECTION_TICKS);
    world.heal();
    await world.changed([{ kind: 'remove', node: node.id }], 1);
    node.remove(1);
    await world.settle();
    node.comeBack(2);
    await world.settle();
    expect(late.length).toBeGreaterThan(0);
    for (const parcel of late) world.deliver(parcel);
    await world.settle();
    expect(node.fatals).toEqual([]);
    await world.changed([{ kind: 'addLearner', node: node.id }], 2);
    await world.commit('b', [node.id]);
  });

  it('costs no election timeout, although it is in a newer term than the leader', async () => {
    const world = new World({ voters: 4 });
    await world.commit('a', [1, 2, 3, 4]);
    const leader = await world.elect();
    const node = world.node((leader.id % 4) + 1);
    const { term } = leader.status;
    await world.changed([{ kind: 'remove', node: node.id }], 1);
    node.remove(1);
    await world.settle();
    node.comeBack(2);
    world.change(leader, [{ kind: 'addLearner', node: node.id }], 2);
    await world.settle();
    await world.tick(2);
    expect(leader.status).toMatchObject({ role: 'leader' });
    expect(leader.status.term).toBeGreaterThan(term);
    await world.commit('b', [node.id]);
  });

  it('is not counted for what its former life acknowledged', async () => {
    const world = new World({ voters: 4 });
    await world.commit('a', [1, 2, 3, 4]);
    const leader = await world.elect();
    const node = world.node((leader.id % 4) + 1);
    const late: Parcel[] = [];
    world.passes = (parcel) => {
      const message = messageOf(parcel);
      const isHeld = parcel.from === node.id && message?.type === 'appendResponse' && !message.rejected;
      if (isHeld) late.push(parcel);
      return !isHeld;
    };
    await world.commit('b');
    await world.changed([{ kind: 'remove', node: node.id }], 1);
    world.heal();
    node.remove(1);
    await world.settle();
    node.comeBack(2);
    // It hears nothing: all that the leader can learn of it is late.
    world.passes = ({ to }) => to !== node.id;
    await world.changed([{ kind: 'addLearner', node: node.id }], 2);
    expect(late.length).toBeGreaterThan(0);
    for (const parcel of late) world.deliver(parcel);
    await world.settle();
    const answer = world.change(leader, [{ kind: 'promote', node: node.id }], 2);
    await world.settle();
    expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
  });
});

describe('what decides whether a replica may go', () => {
  it('an offer is told of when it is on disk', async () => {
    const world = new World({ voters: 3 });
    await world.elect();
    world.stalled.add(2);
    let isTold = false;
    world.node(2).raft.offerGroup(GROUP, 7, () => {
      isTold = true;
    });
    await world.settle();
    expect(isTold).toBe(false);
    expect(world.node(2).disk.get(GROUP)?.placement).toBe(0);
    world.stalled.clear();
    await world.settle();
    expect(isTold).toBe(true);
    expect(world.node(2).disk.get(GROUP)?.placement).toBe(7);
  });

  it('the newest epoch in the log counts before it is applied', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const follower = world.node((leader.id % 3) + 1);
    world.passes = ({ from, to }) => from === leader.id && to === follower.id;
    world.change(leader, [{ kind: 'addLearner', node: 9 }], 4);
    await world.settle();
    expect(follower.raft.configOf(GROUP)?.epoch).toBe(0);
    expect(follower.raft.newestEpoch(GROUP)).toBe(4);
    expect(world.node((follower.id % 3) + 1).raft.newestEpoch(GROUP)).toBe(0);
  });

  it('a leader knows whether a learner was heard from lately', async () => {
    const world = new World({ voters: 3 });
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    const leader = await world.elect();
    const reached = (node: NodeId): boolean => leader.raft.isReachable(GROUP, node);
    await world.tick(3 * ELECTION_TICKS);
    expect([1, 2, 3, 4, 5].map(reached)).toEqual([true, true, true, true, false]);
    world.node(4).crash();
    await world.tick(3 * ELECTION_TICKS);
    expect(reached(4)).toBe(false);
    world.node(4).start();
    await world.tick(ELECTION_TICKS);
    expect(reached(4)).toBe(true);
    const follower = world.node(leader.id === 1 ? 2 : 1);
    expect(follower.raft.isReachable(GROUP, 4)).toBe(false);
  });
});
