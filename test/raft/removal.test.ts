/**
 * Replicas that are removed from a node, and come back: what they promised before must neither be needed nor believed.
 * The versions of the placement are those of raft/README.md, "Removing a replica".
 */
import { describe, expect, it } from 'vitest';
import { decodeConfig } from '../../raft/membership.ts';
import type { Message, NodeId } from '../../raft/types.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { messageOf, type Parcel } from './driver/parcel.ts';

/** Moves the group from `leaving` to as many new nodes, in the name of `epoch`. */
async function move(
  cluster: Cluster,
  leaving: readonly NodeId[],
  entering: readonly NodeId[],
  epoch: number,
): Promise<void> {
  for (const id of entering) {
    if (!cluster.nodes.has(id)) cluster.add(id);
    await cluster.changed([{ kind: 'addLearner', node: id }], epoch);
  }
  await cluster.commit(`for ${entering.join(' ')}`, entering);
  await cluster.changed(
    [
      ...entering.map((node) => ({ kind: 'promote', node }) as const),
      ...leaving.map((node) => ({ kind: 'remove', node }) as const),
    ],
    epoch,
  );
}

interface Moved {
  readonly cluster: Cluster;
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
  const cluster = new Cluster({ voters: 1 });
  await move(cluster, [1], [2, 3, 4], 0);
  cluster.node(1).crash();
  await cluster.commit('a', [2, 3, 4]);
  const leader = await cluster.elect();
  const [second, asleep] = [2, 3, 4].filter((id) => id !== leader.id).map((id) => cluster.node(id));
  const first = leader;
  if (second === undefined || asleep === undefined) throw new Error('three nodes');
  if (sleeps === 'all the time') asleep.crash();
  for (let i = 0; i < 5; i += 1) await cluster.commit(`b${i}`, [first.id, second.id]);
  let isDeaf = false;
  cluster.passes = (parcel) => {
    if (parcel.to !== asleep.id) return true;
    const isHeard = !isDeaf;
    isDeaf ||= beginsMove(parcel);
    return isHeard;
  };
  await move(cluster, [2, 3, 4], [5, 6, 7], 1);
  cluster.heal();
  if (sleeps === 'soon') asleep.crash();
  for (const node of [first, second]) node.remove(1);
  await cluster.settle();
  return { cluster, first, second, asleep };
}

/** In an election: as a candidate, or for one. */
function takesPart(message: Message): boolean {
  return message.type === 'preVote' || message.type === 'vote' || ('granted' in message && message.granted);
}

/** These reach only each other. */
async function expectNobodyElected(cluster: Cluster, nodes: readonly Node[]): Promise<void> {
  cluster.isolate(...nodes.map(({ id }) => id));
  for (let i = 0; i < 10 * ELECTION_TICKS; i += 1) {
    await cluster.tick();
    for (const node of nodes) expect(node.isLeader).toBe(false);
  }
}

describe('a replica that is removed', () => {
  it('leaves a tombstone with a term it never was in, also after a restart', async () => {
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

  it('says nothing more, not even what waited for the disk, and hears nothing', async () => {
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
    'and crashes before that is on disk (%s) is there or is gone',
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

  it('tells those who wait that it is lost', async () => {
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

describe('a replica that came back', () => {
  it('elects nobody who slept while the group moved: it has forgotten what it helped to decide', async () => {
    const { cluster, first, second, asleep } = await movedAway();
    await cluster.commit('granted', [5, 6, 7]);
    // The two are to be members again, and nobody has added them yet. The third wakes up, and reaches only them.
    for (const node of [first, second]) node.comeBack(2);
    asleep.start();
    await expectNobodyElected(cluster, [first, second, asleep]);
    cluster.heal();
    await cluster.commit('and on', [5, 6, 7]);
  });

  it.each(['more', 'less'])(
    'elects nobody either, nor itself, with a part of the old log: %s',
    async (amount) => {
      const { cluster, first, asleep } = await movedAway();
      const known = asleep.disk.get(GROUP)?.entries.length ?? 0;
      const count = amount === 'more' ? known + 1 : known - 1;
      first.comeBack(2);
      // A leader of the new members adds it again, and the connection breaks after a part of the first append.
      cluster.passes = (parcel) => {
        const message = messageOf(parcel);
        if (parcel.to !== first.id || message?.type !== 'append' || message.entries.length === 0) return true;
        if (message.prevIndex > 0) return false;
        const part = { ...message, entries: message.entries.slice(0, count), commit: count };
        first.raft.receive([{ kind: 'message', group: GROUP, message: part }]);
        return false;
      };
      await cluster.changed([{ kind: 'addLearner', node: first.id }], 2);
      await cluster.tick(ELECTION_TICKS);
      expect(first.status).toMatchObject({ lastIndex: count, config: { voters: [2, 3, 4] } });
      asleep.start();
      await expectNobodyElected(cluster, [first, asleep]);
    },
  );

  it.each(['applied', 'not applied'] as const)(
    'takes no part in elections when the newest configuration it holds is the one that removed it: %s',
    async (state) => {
      const { cluster, first, asleep } = await movedAway('soon');
      const lastIndex = asleep.disk.get(GROUP)?.entries.at(-1)?.index ?? 0;
      first.comeBack(2);
      // Its log ends where that of the sleeper does: it hears nothing after that part of the first append.
      let isDeaf = false;
      cluster.passes = (parcel) => {
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
      await cluster.changed([{ kind: 'addLearner', node: first.id }], 2);
      await cluster.tick(ELECTION_TICKS);
      expect(first.status.lastIndex).toBe(lastIndex);
      expect(first.raft.newestEpoch(GROUP)).toBe(1);
      expect(first.status.config.outgoing).toEqual(state === 'applied' ? [2, 3, 4] : []);
      cluster.sent.length = 0;
      asleep.start();
      await expectNobodyElected(cluster, [first, asleep]);
      const said = cluster.sent.filter(({ from }) => from === first.id).map(messageOf);
      const asked = cluster.sent
        .filter(({ from, to }) => from === asleep.id && to === first.id)
        .map(messageOf);
      expect(asked.some((message) => message?.type === 'preVote')).toBe(true);
      expect(said.filter((message) => message !== undefined && takesPart(message))).toEqual([]);
    },
  );

  it('votes when it has caught up: its vote may be needed', async () => {
    const { cluster, first } = await movedAway();
    first.comeBack(2);
    await move(cluster, [5, 6, 7], [first.id], 2);
    expect((await cluster.elect()).id).toBe(first.id);
    await cluster.commit('alone', [first.id]);
    expect(first.status.config).toMatchObject({ epoch: 2, voters: [first.id], outgoing: [] });
  });

  it('is promoted only when it has on disk that it is a member, however short the log is', async () => {
    const cluster = new Cluster({ voters: 1 });
    await cluster.elect();
    cluster.add(2);
    // It answers, and no append reaches it.
    cluster.passes = (parcel) => !(parcel.to === 2 && messageOf(parcel)?.type === 'append');
    await cluster.changed([{ kind: 'addLearner', node: 2 }]);
    await cluster.tick(2 * ELECTION_TICKS);
    const leader = await cluster.elect();
    const answer = cluster.change(leader, [{ kind: 'promote', node: 2 }]);
    await cluster.settle();
    expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
  });

  it('is not stopped by what a leader remembers of its former life', async () => {
    const cluster = new Cluster({ voters: 4 });
    await cluster.commit('a', [1, 2, 3, 4]);
    const leader = await cluster.elect();
    const node = cluster.node((leader.id % 4) + 1);
    // A heartbeat that tells of what it has acknowledged is late.
    const late: Parcel[] = [];
    cluster.passes = (parcel) => {
      const message = messageOf(parcel);
      const isHeld = parcel.to === node.id && message?.type === 'heartbeat' && (message.match ?? 0) > 0;
      if (isHeld) late.push(parcel);
      return !isHeld;
    };
    await cluster.tick(ELECTION_TICKS);
    cluster.heal();
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    node.remove(1);
    await cluster.settle();
    node.comeBack(2);
    await cluster.settle();
    expect(late.length).toBeGreaterThan(0);
    for (const parcel of late) cluster.deliver(parcel);
    await cluster.settle();
    expect(node.fatals).toEqual([]);
    await cluster.changed([{ kind: 'addLearner', node: node.id }], 2);
    await cluster.commit('b', [node.id]);
  });

  it('costs no election timeout, although it is in a newer term than the leader', async () => {
    const cluster = new Cluster({ voters: 4 });
    await cluster.commit('a', [1, 2, 3, 4]);
    const leader = await cluster.elect();
    const node = cluster.node((leader.id % 4) + 1);
    const { term } = leader.status;
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    node.remove(1);
    await cluster.settle();
    node.comeBack(2);
    cluster.change(leader, [{ kind: 'addLearner', node: node.id }], 2);
    await cluster.settle();
    await cluster.tick(2);
    expect(leader.status).toMatchObject({ role: 'leader' });
    expect(leader.status.term).toBeGreaterThan(term);
    await cluster.commit('b', [node.id]);
  });

  it('is not counted for what its former life acknowledged', async () => {
    const cluster = new Cluster({ voters: 4 });
    await cluster.commit('a', [1, 2, 3, 4]);
    const leader = await cluster.elect();
    const node = cluster.node((leader.id % 4) + 1);
    const late: Parcel[] = [];
    cluster.passes = (parcel) => {
      const message = messageOf(parcel);
      const isHeld = parcel.from === node.id && message?.type === 'appendResponse' && !message.rejected;
      if (isHeld) late.push(parcel);
      return !isHeld;
    };
    await cluster.commit('b');
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    cluster.heal();
    node.remove(1);
    await cluster.settle();
    node.comeBack(2);
    // It hears nothing: all that the leader can learn of it is late.
    cluster.passes = ({ to }) => to !== node.id;
    await cluster.changed([{ kind: 'addLearner', node: node.id }], 2);
    expect(late.length).toBeGreaterThan(0);
    for (const parcel of late) cluster.deliver(parcel);
    await cluster.settle();
    const answer = cluster.change(leader, [{ kind: 'promote', node: node.id }], 2);
    await cluster.settle();
    expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
  });
});

describe('what decides whether a replica may go', () => {
  it('an offer is told of when it is on disk', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.elect();
    cluster.stalled.add(2);
    let isTold = false;
    cluster.node(2).raft.offerGroup(GROUP, 7, () => {
      isTold = true;
    });
    await cluster.settle();
    expect(isTold).toBe(false);
    expect(cluster.node(2).disk.get(GROUP)?.placement).toBe(0);
    cluster.stalled.clear();
    await cluster.settle();
    expect(isTold).toBe(true);
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

  it('a leader knows whether a learner was heard from lately', async () => {
    const cluster = new Cluster({ voters: 3 });
    cluster.add(4);
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
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
