/**
 * Idle groups: the beats between their nodes, the events that wake them, and that a rest delays nothing.
 */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../../raft/types.ts';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS, TICK_MILLIS } from './options.ts';
import { messageOf, type Parcel, typeOf } from './parcel.ts';

/** Ticks until a group rests in which nothing happened. */
const QUIET_TICKS = 4 * ELECTION_TICKS;

/** Every group has a leader, and rests. */
async function resting(voters: number, groups = 1): Promise<Cluster> {
  const cluster = new Cluster({ voters, groups });
  for (const group of cluster.groups) await cluster.elect(group);
  await cluster.tick(QUIET_TICKS);
  cluster.sent.length = 0;
  return cluster;
}

async function restingWithLeader(): Promise<{ cluster: Cluster; leader: Node; followers: [Node, Node] }> {
  const cluster = await resting(3);
  const leader = await cluster.elect();
  const [one, other] = cluster.up.filter((node) => node !== leader);
  if (one === undefined || other === undefined) throw new Error('two followers');
  return { cluster, leader, followers: [one, other] };
}

function kindsOf(sent: readonly Parcel[]): Set<string> {
  return new Set(sent.map(typeOf));
}

describe('idle groups', () => {
  it('together send one beat from node to node, and its answer', async () => {
    const cluster = await resting(3, 20);
    const leaders = new Set(cluster.groups.map((group) => cluster.leaderOf(group)?.id));
    const ticks = 10 * HEARTBEAT_TICKS;
    await cluster.tick(ticks);
    expect(kindsOf(cluster.sent)).toEqual(new Set(['beat', 'beatAnswer']));
    const pairs = 2 * leaders.size;
    expect(cluster.sent).toHaveLength((2 * pairs * ticks) / HEARTBEAT_TICKS);
    // Every node now knows the lists of the others.
    const lists = cluster.sent.filter(
      ({ message }) => message.kind === 'beat' && message.groups !== undefined,
    );
    expect(lists).toEqual([]);
  });

  it('keep their leaders and terms', async () => {
    const cluster = await resting(3, 5);
    const before = cluster.groups.map((group) => cluster.leaderOf(group)?.statusOf(group));
    await cluster.tick(20 * ELECTION_TICKS);
    expect(cluster.groups.map((group) => cluster.leaderOf(group)?.statusOf(group))).toEqual(before);
  });

  it('wake for a command, each without the others, and rest again', async () => {
    const cluster = await resting(3, 5);
    const leader = cluster.leaderOf(GROUP);
    leader?.propose('a');
    await cluster.until(() => cluster.up.every(({ app }) => app.commands.includes('a')));
    const others = cluster.sent.filter(({ message }) => 'group' in message && message.group !== GROUP);
    expect(others).toEqual([]);
    await cluster.tick(QUIET_TICKS);
    cluster.sent.length = 0;
    await cluster.tick(10 * HEARTBEAT_TICKS);
    expect(kindsOf(cluster.sent)).toEqual(new Set(['beat', 'beatAnswer']));
  });

  it('answer a read that comes while they rest', async () => {
    const { cluster, leader } = await restingWithLeader();
    const indexes: (number | undefined)[] = [];
    leader.raft.readIndex(GROUP, (index) => indexes.push(index));
    await cluster.settle();
    expect(indexes).toEqual([leader.status.lastIndex]);
  });

  it('do not rest while a member lacks an entry', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const cut = cluster.otherThan(leader);
    cluster.passes = ({ from, to }) => from !== cut.id && to !== cut.id;
    await cluster.tick(QUIET_TICKS);
    cluster.sent.length = 0;
    await cluster.tick(10 * HEARTBEAT_TICKS);
    expect(kindsOf(cluster.sent)).not.toContain('beat');
  });
});

describe('followers that rest', () => {
  it('elect another leader when its node falls silent, as soon as groups that do not rest', async () => {
    const { cluster, leader } = await restingWithLeader();
    const { term } = leader.status;
    leader.crash();
    await cluster.until(() => cluster.leader !== undefined, 3 * ELECTION_TICKS);
    expect(cluster.leader?.status.term).toBeGreaterThan(term);
  });

  it('do not rest before they know that all entries are committed', async () => {
    const { cluster, leader, followers } = await restingWithLeader();
    const [one] = followers;
    // It gets the entry, and no message that says it is committed.
    cluster.passes = (parcel) => {
      const message = messageOf(parcel);
      return parcel.to !== one.id || (message?.type === 'append' && message.entries.length > 0);
    };
    leader.propose('a');
    await cluster.settle();
    const { term, lastIndex: index, commit } = leader.status;
    expect(commit).toBe(index);
    expect(one.status).toMatchObject({ lastIndex: index, commit: index - 1, leader: leader.id });
    const groups = [{ group: GROUP, term, index, timeMillis: leader.app.clock.nowMillis() }];
    cluster.sent.length = 0;
    one.raft.receive([{ ...beatOf(leader.id, 7, 1), groups }]);
    await cluster.settle();
    const answers = cluster.sent.map(({ message }) => message).filter(({ kind }) => kind === 'beatAnswer');
    expect(answers).toMatchObject([{ from: one.id, version: 1, awake: [GROUP] }]);
  });

  it('do not help to depose a leader whose beats they hear', async () => {
    const { cluster, leader, followers } = await restingWithLeader();
    const [one] = followers;
    const { term } = leader.status;
    one.raft.peerLost(leader.id);
    await cluster.tick(2 * ELECTION_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    expect(cluster.leader).toBe(leader);
  });

  it('ignore beats of an earlier process of the leader', async () => {
    const { cluster, leader } = await restingWithLeader();
    leader.crash();
    // A beat every heartbeat interval, from a process whose list they do not know.
    for (let i = 0; i < 3 * ELECTION_TICKS && cluster.leader === undefined; i += 1) {
      for (const node of cluster.up) node.raft.receive([beatOf(leader.id, 7, i)]);
      await cluster.tick();
    }
    expect(cluster.leader).toBeDefined();
  });
});

function beatOf(from: NodeId, process: number, readingMillis: number) {
  return { kind: 'beat', from, process, version: 1, readingMillis } as const;
}

describe('a leader that rests', () => {
  it('steps down when its followers are silent', async () => {
    const { cluster, leader } = await restingWithLeader();
    cluster.passes = ({ from, to }) => from !== leader.id && to !== leader.id;
    await cluster.tick(2 * ELECTION_TICKS);
    expect(leader.isLeader).toBe(false);
  });

  it('counts no answer of a node for a group that does not rest there', async () => {
    const { cluster, leader, followers } = await restingWithLeader();
    const { term } = leader.status;
    // Beats between the nodes arrive, messages of groups do not; one of the followers takes over.
    cluster.passes = (parcel) =>
      messageOf(parcel) === undefined || (parcel.from !== leader.id && parcel.to !== leader.id);
    const [one] = followers;
    const message = { type: 'timeoutNow', from: leader.id, to: one.id, term } as const;
    one.raft.receive([{ kind: 'message', group: GROUP, message }]);
    await cluster.until(() => followers.some((node) => node.isLeader), 2 * ELECTION_TICKS);
    await cluster.until(() => !leader.isLeader, 2 * ELECTION_TICKS + HEARTBEAT_TICKS);
    expect(leader.status.term).toBe(term);
  });

  it('sends the list of resting groups again to a follower that came back', async () => {
    const { cluster, leader, followers } = await restingWithLeader();
    const [one] = followers;
    one.crash();
    leader.raft.peerLost(one.id);
    one.start();
    await cluster.until(() => one.app.index === leader.app.index);
    await cluster.tick(QUIET_TICKS);
    cluster.sent.length = 0;
    await cluster.tick(10 * HEARTBEAT_TICKS);
    expect(kindsOf(cluster.sent)).toEqual(new Set(['beat', 'beatAnswer']));
    expect(leader.isLeader).toBe(true);
  });
});

/** The follower's clock gains half a tick with each tick. */
async function restFast(cluster: Cluster, fast: Node, ticks: number): Promise<void> {
  for (let i = 0; i < ticks; i += 1) {
    fast.clockAheadMillis += TICK_MILLIS / 2;
    await cluster.tick();
  }
}

describe('group time of a follower that rests', () => {
  it('follows the clock of its leader, not its own', async () => {
    const { cluster, leader, followers } = await restingWithLeader();
    const [fast] = followers;
    await restFast(cluster, fast, 20 * ELECTION_TICKS);
    const leadersMillis = leader.app.clock.nowMillis();
    // The group wakes without a message from the leader.
    fast.raft.peerLost(leader.id);
    const aheadMillis = fast.app.clock.nowMillis() - leadersMillis;
    expect(aheadMillis).toBeLessThanOrEqual(HEARTBEAT_TICKS * (TICK_MILLIS / 2));
    expect(aheadMillis).toBeGreaterThanOrEqual(-HEARTBEAT_TICKS * TICK_MILLIS);
  });

  it('does not follow the clock of another process of its leader', async () => {
    const { leader, followers } = await restingWithLeader();
    const [one] = followers;
    const beforeMillis = one.app.clock.nowMillis();
    one.raft.receive([beatOf(leader.id, 7, 2_000_000_000_000)]);
    one.turn();
    one.raft.peerLost(leader.id);
    expect(one.app.clock.nowMillis()).toBeLessThanOrEqual(beforeMillis);
  });
});
