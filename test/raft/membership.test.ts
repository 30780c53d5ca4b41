/** Members that join and leave while the group works, with the real driver (driver/agreement.ts lists the checks). */
import { describe, expect, it } from 'vitest';
import { isJoint } from '../../raft/membership.ts';
import { ascending, Cluster, refusalOf } from './driver/cluster.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { isCampaign } from './driver/parcel.ts';

describe('changing members', () => {
  it('61: two nodes are added, one at a time, and count for the quorum', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.commit('a');
    await cluster.join(4);
    await cluster.join(5);
    expect(cluster.voters).toEqual([1, 2, 3, 4, 5]);
    await cluster.commit('b', [1, 2, 3, 4, 5]);
    // Three of five are still a quorum: two of the first three may go.
    cluster.node(1).crash();
    cluster.node(2).crash();
    await cluster.commit('c', [3, 4, 5]);
  });

  it('65: a node is replaced in one change, with the quorum never smaller than three', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const { id: gone } = cluster.otherThan(leader);
    await cluster.joinAsLearner(4);
    await cluster.commit('a', [4]);
    const config = await cluster.changed([
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ]);
    expect(config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4].filter((id) => id !== gone));
    expect(config.outgoing).toEqual([]);
    await cluster.commit('b', [4]);
    // The application of every node saw the joint configuration first.
    expect(cluster.node(4).app.configs.some(isJoint)).toBe(true);
    expect(cluster.node(4).status.config).toEqual(config);
  });

  it('59: a leader that is removed steps down once that is complete, and does not count itself', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const others = [1, 2, 3].filter((id) => id !== leader.id);
    const result = await cluster.changed([{ kind: 'remove', node: leader.id }]);
    expect(result.voters.toSorted(ascending)).toEqual(others);
    expect(leader.isLeader).toBe(false);
    const term = leader.status.term;
    await cluster.commit('after', others);
    expect(cluster.leader?.id).not.toBe(leader.id);
    await cluster.tick(5 * ELECTION_TICKS);
    // It knows that it was removed; it neither campaigns nor gets messages any more.
    expect(leader.status).toMatchObject({ role: 'follower', term });
    expect(leader.app.commands).not.toContain('after');
  });

  it('59: the leader of two is removed, and the other goes on alone', async () => {
    const cluster = new Cluster({ voters: 2 });
    const leader = await cluster.elect();
    const other = 3 - leader.id;
    await cluster.changed([{ kind: 'remove', node: leader.id }]);
    leader.crash();
    await cluster.commit('alone', [other]);
    expect(cluster.voters).toEqual([other]);
  });

  it('59, 54: a removed leader with the longest log, cut off too early, sends the other its commit index instead of voting', async () => {
    for (const restarts of [false, true]) {
      const cluster = new Cluster({ voters: 2 });
      const leader = await cluster.elect();
      const other = cluster.node(3 - leader.id);
      const answer = cluster.change(leader, [{ kind: 'remove', node: leader.id }]);
      // Nothing gets out of the leader once it knows that the change is committed.
      cluster.passes = () => leader.isJoint || leader.status.config.voters.includes(leader.id);
      await cluster.until(() => !leader.status.config.voters.includes(leader.id) && !leader.isJoint);
      leader.propose('never committed');
      await cluster.until(() => answer.result !== undefined);
      expect(refusalOf(answer)).toBe('unknownOutcome');
      expect(other.isJoint).toBe(true);
      expect(leader.status.lastIndex).toBeGreaterThan(other.status.lastIndex);
      if (restarts) {
        leader.crash();
        leader.start();
      }
      cluster.heal();
      await cluster.commit('alone', [other.id]);
      expect(cluster.voters).toEqual([other.id]);
    }
  });

  it('58: two nodes that could not commit as two of four can as two of three', async () => {
    const cluster = new Cluster({ voters: 4 });
    const leader = await cluster.elect();
    const [a, b, c] = [1, 2, 3, 4].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined || c === undefined) throw new Error('three followers');
    // With one node down four still have a quorum of three; the removal makes two of three enough.
    cluster.node(a).crash();
    await cluster.changed([{ kind: 'remove', node: a }]);
    cluster.node(b).crash();
    await cluster.commit('smaller quorum', [leader.id, c]);
    expect(cluster.voters).toHaveLength(3);
  });

  it('65: a group shrinks to one node and grows back to three', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const id of [1, 2, 3]) {
      if (id === leader.id) continue;
      await cluster.changed([{ kind: 'remove', node: id }]);
      cluster.node(id).crash();
    }
    expect(cluster.voters).toEqual([leader.id]);
    await cluster.commit('alone');
    await cluster.join(4);
    await cluster.join(5);
    expect(cluster.voters).toEqual([leader.id, 4, 5].toSorted(ascending));
    leader.crash();
    await cluster.commit('without the first', [4, 5]);
  });

  it('57: adding members does not make a leader step down', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    const { term } = leader.status;
    // The learner is never started: it is a member that never answers.
    await cluster.changed([{ kind: 'addLearner', node: 2 }]);
    await cluster.tick(5 * ELECTION_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    await cluster.commit('goes on');
  });

  it('17: learners get every entry, count for no quorum and never campaign', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const id of [4, 5, 6, 7]) {
      await cluster.joinAsLearner(id);
    }
    await cluster.commit('a', [1, 2, 3, 4, 5, 6, 7]);
    const followers = [1, 2, 3].filter((id) => id !== leader.id);
    for (const id of followers) cluster.node(id).crash();
    leader.propose('no quorum');
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.appliedMax).toBe(cluster.node(4).app.index);
    expect(cluster.node(4).app.commands).not.toContain('no quorum');
    leader.crash();
    cluster.sent.length = 0;
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter(isCampaign)).toEqual([]);
  });

  it('18, 94: a promoted node that does not know it yet grants the vote that is needed', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.joinAsLearner(4);
    await cluster.commit('a', [4]);
    const [b, c] = [1, 2, 3].filter((id) => id !== leader.id);
    if (b === undefined || c === undefined) throw new Error('two followers');
    // Node 4 never hears that the change is committed.
    const { lastIndex } = leader.status;
    cluster.passes = ({ to, message }) =>
      to !== 4 ||
      message.kind !== 'message' ||
      !('commit' in message.message && message.message.commit > lastIndex);
    await cluster.changed([{ kind: 'promote', node: 4 }]);
    expect(cluster.node(4).status.config.learners).toEqual([4]);
    leader.crash();
    cluster.heal();
    // Three of the four voters are left, and all three votes are needed.
    await cluster.commit('b', [b, c, 4]);
  });

  it('57: a demoted voter goes on as a learner, and nothing is sent to a node that was removed', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) throw new Error('two followers');
    const config = await cluster.changed([{ kind: 'demote', node: a }]);
    expect(config.learners).toEqual([a]);
    await cluster.commit('still learns', [a]);
    await cluster.changed([{ kind: 'remove', node: a }]);
    expect([...leader.status.match.keys()].toSorted(ascending)).toEqual([leader.id, b].toSorted(ascending));
    await cluster.commit('x', [leader.id, b]);
    expect(cluster.node(a).app.commands).not.toContain('x');
  });
});

describe('the members as a node reports them', () => {
  it('are the configuration in effect, with a flag while a change is under way', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.otherThan(leader);
    const other = cluster.otherThan(leader, follower);
    expect([leader.raft.configOf(9), leader.raft.isChanging(9)]).toEqual([undefined, false]);
    expect(leader.raft.configOf(GROUP)).toEqual({ epoch: 0, voters: [1, 2, 3], outgoing: [], learners: [] });
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    const answer = cluster.change(leader, [{ kind: 'remove', node: other.id }]);
    // On the leader, from the request until it is answered; elsewhere, while the configuration is joint.
    expect(leader.raft.isChanging(GROUP)).toBe(true);
    expect(follower.raft.isChanging(GROUP)).toBe(false);
    await cluster.until(() => answer.result !== undefined);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    expect(leader.raft.configOf(GROUP)).toBe(leader.app.config);
    await cluster.until(() => !follower.raft.isChanging(GROUP));
    // A node that lost leadership with a change in its log does not wait for it forever.
    cluster.isolate(leader.id);
    cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => !leader.isLeader);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
  });
});

describe('nodes that lag far behind, and nodes that were away for long', () => {
  it('73: a learner gets a snapshot, then the log, and is promoted', async () => {
    const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 300 } });
    for (let i = 0; i < 30; i += 1) await cluster.commit(`${i}`);
    const leader = await cluster.elect();
    expect(leader.status.logStart).toBeGreaterThan(0);
    await cluster.join(4);
    expect(cluster.sent.some(({ to, message }) => to === 4 && message.kind === 'chunk')).toBe(true);
    cluster.node(leader.id).crash();
    await cluster.commit('b', [4]);
  });

  it('65, 86: a node that was removed while it was down comes back and does not disturb the group', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const gone = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    cluster.isolate(gone);
    await cluster.changed([{ kind: 'remove', node: gone }]);
    await cluster.commit('a');
    // It believes that it is a member, and asks for votes all the time.
    await cluster.tick(5 * ELECTION_TICKS);
    const { term } = leader.status;
    cluster.heal();
    cluster.sent.length = 0;
    await cluster.tick(20 * ELECTION_TICKS);
    expect(cluster.sent.some((parcel) => parcel.from === gone && isCampaign(parcel))).toBe(true);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    cluster.node(gone).crash();
    cluster.node(gone).start();
    await cluster.tick(20 * ELECTION_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    // And it cannot win when the leader is gone, because its log is old.
    leader.crash();
    await cluster.tick(20 * ELECTION_TICKS);
    expect(cluster.leader).toBeUndefined();
    leader.start();
    await cluster.commit('b');
    expect(cluster.node(gone).app.commands).not.toContain('b');
  });

  it('65: a change during a partition is completed by the majority, and the minority follows', async () => {
    const cluster = new Cluster({ voters: 5 });
    const leader = await cluster.elect();
    const minority = [1, 2, 3, 4, 5].filter((id) => id !== leader.id).slice(0, 2);
    cluster.isolate(...minority);
    const [gone, stays] = minority;
    if (gone === undefined || stays === undefined) throw new Error('two of them');
    await cluster.changed([{ kind: 'remove', node: gone }]);
    cluster.heal();
    await cluster.commit('a', [stays]);
    expect(cluster.node(stays).status.config.voters).not.toContain(gone);
  });
});
