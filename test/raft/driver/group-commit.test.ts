/** One disk write of bounded size for all groups of a node; data that arrives meanwhile goes into the next. */
import { describe, expect, it } from 'vitest';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { GROUP, HEARTBEAT_TICKS } from './options.ts';
import { messageOf, type Parcel } from './parcel.ts';

function isAck(parcel: Parcel): boolean {
  const message = messageOf(parcel);
  return message?.type === 'appendResponse' && !message.rejected;
}

/** True if the whole log is on disk, or in the write in flight. */
function hasAll(node: Node, group: number): boolean {
  const write = node.store.writes.at(-1)?.find((candidate) => candidate.group === group);
  return write?.entries.at(-1)?.index === node.statusOf(group).lastIndex;
}

function runTurns(node: Node): void {
  while (node.hasTurn) node.turn();
}

describe('group commit', () => {
  it('several groups write together', async () => {
    const cluster = new Cluster({ voters: 1, groups: 5 });
    const node = cluster.node(1);
    for (const group of cluster.groups) await cluster.elect(group);
    node.store.writes.length = 0;
    for (const group of cluster.groups) node.propose('a', group);
    node.turn();
    expect(node.store.writes).toHaveLength(1);
    expect(node.store.writes[0]?.map(({ group, entries }) => [group, entries.length])).toEqual(
      cluster.groups.map((group) => [group, 1]),
    );
    await cluster.settle();
    for (const group of cluster.groups) expect(node.appOf(group).applied.at(-1)?.kind).toBe('command');
  });

  it('43: commands that are proposed during a write go together into the next one', async () => {
    const cluster = new Cluster({ voters: 1, groups: 2 });
    const node = cluster.node(1);
    for (const group of cluster.groups) await cluster.elect(group);
    node.propose('first');
    node.turn();
    expect(node.isWriting).toBe(true);
    node.store.writes.length = 0;
    for (let i = 0; i < 10; i += 1) {
      node.propose(`p${i}`);
      node.propose(`q${i}`, 2);
      runTurns(node);
    }
    expect(node.store.writes).toHaveLength(0);
    node.sync();
    runTurns(node);
    expect(node.store.writes).toHaveLength(1);
    const [first] = node.store.writes;
    expect(first?.map(({ group, entries }) => [group, entries.length])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    const decoded = new TextDecoder().decode(first?.[0]?.entries[0]?.data);
    expect(decoded.split(',')).toHaveLength(10);
  });

  it('messages are taken during a write, and answered by the one after it', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.otherThan(leader);
    leader.propose('a');
    leader.turn();
    cluster.deliverAll();
    follower.turn();
    expect(follower.isWriting).toBe(true);
    leader.sync();
    leader.propose('b');
    // The round of 'a' is not waited for any longer.
    for (const _ of [1, 2]) leader.raft.tick();
    runTurns(leader);
    for (const parcel of cluster.queue.splice(0)) if (parcel.to === follower.id) cluster.deliver(parcel);
    runTurns(follower);
    expect(follower.status.lastIndex).toBe(3);
    const acks = (): Parcel[] =>
      cluster.queue.filter((parcel) => parcel.from === follower.id && isAck(parcel));
    expect(acks()).toEqual([]);
    follower.sync();
    expect(acks().map(messageOf)).toMatchObject([{ type: 'appendResponse', index: 2 }]);
  });

  it('an offer that comes during a write is reported when the next write, which records it, is on disk', async () => {
    const cluster = new Cluster({ voters: 1 });
    const node = await cluster.elect();
    const reported: number[] = [];
    const offer = (placement: number): void => {
      node.raft.offerGroup(GROUP, placement, () => reported.push(placement));
      runTurns(node);
    };
    const recorded = (): number | undefined => node.store.writes.at(-1)?.[0]?.placement;
    node.propose('a');
    node.turn();
    // One write records no offer, the next one two.
    expect([node.isWriting, recorded()]).toEqual([true, undefined]);
    offer(7);
    offer(8);
    node.sync();
    expect([reported, recorded()]).toEqual([[], 8]);
    offer(9);
    node.sync();
    expect([reported, recorded()]).toEqual([[7, 8], 9]);
    node.sync();
    expect(reported).toEqual([7, 8, 9]);
  });

  it('one write has a bounded number of entries: others wait for the next one, and so do messages about them', async () => {
    const writeBytesMax = 3_000;
    const cluster = new Cluster({ voters: 3, groups: 2, options: { writeBytesMax } });
    const leader = await cluster.elect();
    const late = cluster.otherThan(leader);
    // The node is down while both groups commit a few entries, and then gets all of them at once.
    const held: Parcel[] = [];
    cluster.passes = (parcel) => {
      if (parcel.to === late.id && messageOf(parcel) !== undefined) held.push(parcel);
      return parcel.to !== late.id;
    };
    for (const group of cluster.groups) {
      const from = cluster.leaderOf(group);
      if (from !== undefined && from !== late) await cluster.fill(30, group);
    }
    cluster.heal();
    late.store.writes.length = 0;
    for (const parcel of held) cluster.deliver(parcel);
    while (late.hasTurn && !late.isWriting) late.turn();
    const acknowledged = (): number =>
      cluster.queue.filter((parcel) => parcel.from === late.id && isAck(parcel)).length;
    let writes = 0;
    for (; late.isWriting; writes += 1) {
      const batch = late.store.writes.at(-1) ?? [];
      const cost = batch
        .flatMap(({ entries }) => entries)
        .reduce((sum, { data }) => sum + data.length + 512, 0);
      // One entry may exceed the bound.
      expect(cost).toBeLessThanOrEqual(writeBytesMax + 600);
      const groups = cluster.groups.filter((group) => hasAll(late, group));
      const before = acknowledged();
      late.sync();
      // A group sends its messages when everything that it had in memory is on its disk.
      expect(groups.length > 0 || acknowledged() === before).toBe(true);
    }
    expect(writes).toBeGreaterThan(3);
    expect(acknowledged()).toBeGreaterThan(0);
    await cluster.tick(4 * HEARTBEAT_TICKS);
    for (const group of cluster.groups) expect(cluster.isLevel(group)).toBe(true);
  });

  it('83: a restarted node applies every entry that it knows to be committed, without waiting for a tick', async () => {
    const cluster = new Cluster({ voters: 1, options: { applyBytesMax: 100 } });
    const leader = await cluster.elect();
    await cluster.fill(50);
    leader.crash();
    leader.start();
    await cluster.settle();
    const { applied, commit } = leader.status;
    expect(commit).toBeGreaterThan(40);
    expect(applied).toBe(commit);
  });

  it('one turn applies a bounded number of bytes of all groups, so a node that catches up goes on answering', async () => {
    const bytesMax = 1_000;
    const cluster = new Cluster({ voters: 1, groups: 2, options: { applyBytesMax: bytesMax } });
    const leader = await cluster.elect();
    for (const group of [1, 2]) await cluster.fill(50, group);
    leader.crash();
    leader.start();
    const appliedIn = (): number => [1, 2].reduce((sum, group) => sum + leader.statusOf(group).applied, 0);
    let turns = 0;
    for (let before = 0; appliedIn() < 100; turns += 1) {
      leader.turn();
      // An entry has 32 bytes and more; one of each group is always taken.
      expect(appliedIn() - before).toBeLessThanOrEqual(bytesMax / 32 + 2);
      before = appliedIn();
    }
    expect(turns).toBeGreaterThan(2);
  });

  it('one turn applies at most one entry that is slow to apply, and the entries before it', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    await cluster.fill(40);
    leader.crash();
    leader.start();
    const slowEvery = 4;
    leader.app.isSlowToApply = ({ index }) => index % slowEvery === 0;
    for (let before = 0; leader.status.applied < 40; before = leader.status.applied) {
      leader.turn();
      expect(leader.status.applied - before).toBeLessThanOrEqual(slowEvery);
      expect(leader.status.applied).toBeGreaterThan(before);
    }
  });
});
