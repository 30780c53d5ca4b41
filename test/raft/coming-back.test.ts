/**
 * Replicas that were removed from a node and come back: their earlier promises must neither be needed nor count. The
 * placement versions are those in docs/internals/raft.md, "Removing a replica".
 */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../raft/types.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { messageOf } from './driver/parcel.ts';
import { move, movedAway } from './moved-away.ts';

/** True if the message asks for votes or grants one. */
function takesPart(message: Message): boolean {
  return message.type === 'preVote' || message.type === 'vote' || ('granted' in message && message.granted);
}

/** These nodes reach only each other. */
async function expectNobodyElected(cluster: Cluster, nodes: readonly Node[]): Promise<void> {
  cluster.isolate(...nodes.map(({ id }) => id));
  for (let i = 0; i < 10 * ELECTION_TICKS; i += 1) {
    await cluster.tick();
    for (const node of nodes) expect(node.isLeader).toBe(false);
  }
}

/** A group of four that has committed something, and one that follows. */
async function oneOfFour(): Promise<{ cluster: Cluster; leader: Node; node: Node }> {
  const cluster = new Cluster({ voters: 4 });
  await cluster.commit('a', [1, 2, 3, 4]);
  const leader = await cluster.elect();
  return { cluster, leader, node: cluster.otherThan(leader) };
}

/** Removed by placement 1, it comes back by placement 2. */
async function replaced(cluster: Cluster, node: Node): Promise<void> {
  node.remove(1);
  await cluster.settle();
  node.comeBack(2);
}

describe('a replica that came back', () => {
  it('does not elect a node that slept while the group moved: it has forgotten the entries that it acknowledged', async () => {
    const { cluster, first, second, asleep } = await movedAway();
    await cluster.commit('granted', [5, 6, 7]);
    // The two are to become members again, and are not yet. The node that slept wakes up and reaches only them.
    for (const node of [first, second]) node.comeBack(2);
    asleep.start();
    await expectNobodyElected(cluster, [first, second, asleep]);
    cluster.heal();
    await cluster.commit('and on', [5, 6, 7]);
  });

  it.each(['more', 'less'])(
    'elects neither that node nor itself with a part of the old log: %s',
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
    'takes no part in elections while its newest configuration is the one that removed it: %s',
    async (state) => {
      const { cluster, first, asleep } = await movedAway('soon');
      const lastIndex = asleep.disk.get(GROUP)?.entries.at(-1)?.index ?? 0;
      first.comeBack(2);
      // Its log ends where the sleeping node's does: it gets nothing after that part of the first append.
      let isCut = false;
      cluster.passes = (parcel) => {
        if (parcel.to !== first.id) return true;
        if (isCut) return false;
        const message = messageOf(parcel);
        if (message?.type !== 'append' || message.entries.length === 0) return true;
        if (message.prevIndex > 0) return false;
        isCut = true;
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

  it('is promoted only when the entry that made it a member is on its disk, also if the log is short', async () => {
    const cluster = new Cluster({ voters: 1 });
    await cluster.elect();
    cluster.add(2);
    // It answers heartbeats, but no append reaches it.
    cluster.passes = (parcel) => !(parcel.to === 2 && messageOf(parcel)?.type === 'append');
    await cluster.changed([{ kind: 'addLearner', node: 2 }]);
    await cluster.tick(2 * ELECTION_TICKS);
    const leader = await cluster.elect();
    const answer = cluster.change(leader, [{ kind: 'promote', node: 2 }]);
    await cluster.settle();
    expect(answer.result).toEqual({ ok: false, reason: 'learnerBehind' });
  });

  it('is not stopped by the progress that a leader remembers from before its removal', async () => {
    const { cluster, node } = await oneOfFour();
    // A heartbeat with its earlier acknowledgement arrives late.
    const late = cluster.hold((parcel) => {
      const message = messageOf(parcel);
      return parcel.to === node.id && message?.type === 'heartbeat' && (message.match ?? 0) > 0;
    });
    await cluster.tick(ELECTION_TICKS);
    cluster.heal();
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    await replaced(cluster, node);
    await cluster.settle();
    expect(late.length).toBeGreaterThan(0);
    for (const parcel of late) cluster.deliver(parcel);
    await cluster.settle();
    await cluster.changed([{ kind: 'addLearner', node: node.id }], 2);
    await cluster.commit('b', [node.id]);
  });

  it('does not depose the leader, although it is in a newer term', async () => {
    const { cluster, leader, node } = await oneOfFour();
    const { term } = leader.status;
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    await replaced(cluster, node);
    cluster.change(leader, [{ kind: 'addLearner', node: node.id }], 2);
    await cluster.settle();
    await cluster.tick(2);
    expect(leader.status).toMatchObject({ role: 'leader' });
    expect(leader.status.term).toBeGreaterThan(term);
    await cluster.commit('b', [node.id]);
  });

  it('is not counted for entries that it acknowledged before its removal', async () => {
    const { cluster, leader, node } = await oneOfFour();
    const late = cluster.hold((parcel) => {
      const message = messageOf(parcel);
      return parcel.from === node.id && message?.type === 'appendResponse' && !message.rejected;
    });
    await cluster.commit('b');
    await cluster.changed([{ kind: 'remove', node: node.id }], 1);
    cluster.heal();
    await replaced(cluster, node);
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
