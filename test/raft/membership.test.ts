/** Members that come and go while the group works, through the real driver (see driver/agreement.ts for what is checked). */
import { describe, expect, it } from 'vitest';
import { isJoint } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import { Cluster } from './driver/cluster.ts';
import type { Node } from './driver/node.ts';
import { ELECTION_TICKS, GROUP } from './driver/options.ts';
import { isCampaign } from './driver/parcel.ts';

const ascending = (a: NodeId, b: NodeId): number => a - b;
const joins = (node: Node): boolean => isJoint(node.status.config);
const votersOf = (cluster: Cluster): readonly NodeId[] =>
  cluster.leader?.status.config.voters.toSorted(ascending) ?? [];

function refusalOf(answer: ReturnType<Cluster['change']>): string | undefined {
  return answer.result?.ok === false ? answer.result.reason : undefined;
}

/** Runs turns but lets nothing out or onto a disk: what is asked of a node now is decided by what it knows now. */
async function refused(
  cluster: Cluster,
  node: Node,
  change: Parameters<Cluster['change']>[1],
  epoch?: number,
): Promise<string | undefined> {
  const answer = cluster.change(node, change, epoch);
  await cluster.settle();
  return refusalOf(answer);
}

describe('changing members', () => {
  it('61: two nodes are added, one at a time, and count', async () => {
    const cluster = new Cluster({ voters: 3 });
    await cluster.commit('a');
    await cluster.join(4);
    await cluster.join(5);
    expect(votersOf(cluster)).toEqual([1, 2, 3, 4, 5]);
    await cluster.commit('b', [1, 2, 3, 4, 5]);
    // Three of five are still a quorum: two of the first three may go.
    cluster.node(1).crash();
    cluster.node(2).crash();
    await cluster.commit('c', [3, 4, 5]);
  });

  it('65: a node is replaced in one change, with the quorum never smaller than three', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [gone] = [1, 2, 3].filter((id) => id !== leader.id);
    if (gone === undefined) return;
    cluster.add(4);
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
    await cluster.commit('a', [4]);
    const config = await cluster.changed([
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ]);
    expect(config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4].filter((id) => id !== gone));
    expect(config.outgoing).toEqual([]);
    await cluster.commit('b', [4]);
    // The application of everybody saw the joint configuration first.
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
    // It was told; it neither campaigns nor hears of anything any more.
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
    expect(votersOf(cluster)).toEqual([other]);
  });

  it('59, 54: a removed leader with the longest log, cut off too early, tells the other what it knows instead of voting', async () => {
    for (const restarts of [false, true]) {
      const cluster = new Cluster({ voters: 2 });
      const leader = await cluster.elect();
      const other = cluster.node(3 - leader.id);
      const answer = cluster.change(leader, [{ kind: 'remove', node: leader.id }]);
      // Nothing gets out of the leader once it knows that the change is committed.
      cluster.passes = () => isJoint(leader.status.config) || leader.status.config.voters.includes(leader.id);
      await cluster.until(
        () => !leader.status.config.voters.includes(leader.id) && !isJoint(leader.status.config),
      );
      leader.propose('never committed');
      await cluster.until(() => answer.result !== undefined);
      expect(refusalOf(answer)).toBe('unknownOutcome');
      expect(isJoint(other.status.config)).toBe(true);
      expect(leader.status.lastIndex).toBeGreaterThan(other.status.lastIndex);
      if (restarts) {
        leader.crash();
        leader.start();
      }
      cluster.heal();
      await cluster.commit('alone', [other.id]);
      expect(votersOf(cluster)).toEqual([other.id]);
    }
  });

  it('58: what two of four could not commit, two of three can', async () => {
    const cluster = new Cluster({ voters: 4 });
    const leader = await cluster.elect();
    const [a, b, c] = [1, 2, 3, 4].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined || c === undefined) return;
    // With one node down four still have a quorum of three; the removal makes two of three enough.
    cluster.node(a).crash();
    await cluster.changed([{ kind: 'remove', node: a }]);
    cluster.node(b).crash();
    await cluster.commit('smaller quorum', [leader.id, c]);
    expect(votersOf(cluster)).toHaveLength(3);
  });

  it('65: down to one node and back to three', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const id of [1, 2, 3]) {
      if (id === leader.id) continue;
      await cluster.changed([{ kind: 'remove', node: id }]);
      cluster.node(id).crash();
    }
    expect(votersOf(cluster)).toEqual([leader.id]);
    await cluster.commit('alone');
    await cluster.join(4);
    await cluster.join(5);
    expect(votersOf(cluster)).toEqual([leader.id, 4, 5].toSorted(ascending));
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

  it('17: learners get everything, count for nothing and never campaign', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (const id of [4, 5, 6, 7]) {
      cluster.add(id);
      await cluster.changed([{ kind: 'addLearner', node: id }]);
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
    cluster.add(4);
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
    await cluster.commit('a', [4]);
    const [b, c] = [1, 2, 3].filter((id) => id !== leader.id);
    if (b === undefined || c === undefined) return;
    // Node 4 hears no word of the change being committed.
    const { lastIndex } = leader.status;
    cluster.passes = ({ to, message }) =>
      to !== 4 ||
      message.kind !== 'message' ||
      !('commit' in message.message && message.message.commit > lastIndex);
    await cluster.changed([{ kind: 'promote', node: 4 }]);
    expect(cluster.node(4).status.config.learners).toEqual([4]);
    leader.crash();
    cluster.heal();
    // Of the four voters these three are left, and all three votes are needed.
    await cluster.commit('b', [b, c, 4]);
  });

  it('57: a demoted voter learns on, and nothing is sent to a node that was removed', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) return;
    const config = await cluster.changed([{ kind: 'demote', node: a }]);
    expect(config.learners).toEqual([a]);
    await cluster.commit('still learns', [a]);
    await cluster.changed([{ kind: 'remove', node: a }]);
    expect([...leader.status.match.keys()].toSorted(ascending)).toEqual([leader.id, b].toSorted(ascending));
    await cluster.commit('x', [leader.id, b]);
    expect(cluster.node(a).app.commands).not.toContain('x');
  });
});

describe('what a node says of the members', () => {
  it('the configuration in effect, and whether a change is under way', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [follower, other] = cluster.up.filter(({ id }) => id !== leader.id);
    if (follower === undefined || other === undefined) return;
    expect([leader.raft.configOf(9), leader.raft.isChanging(9)]).toEqual([undefined, false]);
    expect(leader.raft.configOf(GROUP)).toEqual({ epoch: 0, voters: [1, 2, 3], outgoing: [], learners: [] });
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    const answer = cluster.change(leader, [{ kind: 'remove', node: other.id }]);
    // From the moment it is asked for until it is answered, on the leader; elsewhere while two sets decide.
    expect(leader.raft.isChanging(GROUP)).toBe(true);
    expect(follower.raft.isChanging(GROUP)).toBe(false);
    await cluster.until(() => answer.result !== undefined);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    expect(leader.raft.configOf(GROUP)).toBe(leader.app.config);
    await cluster.until(() => !follower.raft.isChanging(GROUP));
    // Whoever lost the lead with a change in its log does not wait for it for ever.
    cluster.isolate(leader.id);
    cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => !leader.isLeader);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
  });
});

describe('what is refused, and why', () => {
  it('66: by a node that does not lead', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const follower = cluster.up.find(({ id }) => id !== leader.id);
    expect(follower && (await refused(cluster, follower, [{ kind: 'addLearner', node: 4 }]))).toBe(
      'notLeader',
    );
  });

  it('56: while a change is pending, or may be', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const first = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    expect(await refused(cluster, leader, [{ kind: 'addLearner', node: 5 }])).toBe('changePending');
    expect(first.result).toBeUndefined();
    cluster.heal();
    await cluster.until(() => first.result?.ok === true);
    expect(await refused(cluster, leader, [{ kind: 'addLearner', node: 4 }])).toBe('alreadyMember');
  });

  it('56: a new leader assumes a change is pending until its own first entry is applied', async () => {
    const cluster = new Cluster({ voters: 3 });
    const old = await cluster.elect();
    // The new leader wins its votes and can commit nothing.
    old.crash();
    cluster.passes = ({ message }) => message.kind !== 'message' || message.message.type !== 'appendResponse';
    await cluster.until(() => cluster.leader !== undefined);
    const { leader } = cluster;
    expect(leader && (await refused(cluster, leader, [{ kind: 'addLearner', node: 4 }]))).toBe(
      'changePending',
    );
    cluster.heal();
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
  });

  it('66: in the name of a placement that a newer one has replaced, whoever leads by then', async () => {
    const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 300 } });
    cluster.add(4);
    // One version of the placement asks for two changes: enter and catch up, then replace.
    await cluster.changed([{ kind: 'addLearner', node: 4 }], 7);
    await cluster.commit('a', [4]);
    const old = await cluster.elect();
    const gone = [1, 2, 3].find((id) => id !== old.id) ?? 0;
    const replace = [
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ] as const;
    expect(await cluster.changed(replace, 7)).toMatchObject({ epoch: 7, outgoing: [] });
    const back = [{ kind: 'addLearner', node: gone }] as const;
    expect(await refused(cluster, old, back, 6)).toBe('staleEpoch');
    // The next leader knows it from its log, and after a restart from its snapshot.
    old.crash();
    const next = await cluster.elect();
    expect(next.id).not.toBe(old.id);
    expect(await refused(cluster, next, back, 6)).toBe('staleEpoch');
    for (let i = 0; i < 20; i += 1) await cluster.commit(`${i}`);
    expect(next.disk.get(GROUP)?.snapshot?.epoch).toBe(7);
    old.start();
    for (const id of votersOf(cluster)) {
      cluster.node(id).crash();
      cluster.node(id).start();
    }
    expect(await refused(cluster, await cluster.elect(), back, 6)).toBe('staleEpoch');
    expect(await cluster.changed(back, 8)).toMatchObject({ epoch: 8, learners: [gone] });
  });

  it('61: a promotion of a learner that has not caught up, or is silent', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.changed([{ kind: 'addLearner', node: 4 }]);
    const promote = [{ kind: 'promote', node: 4 }] as const;
    expect(await refused(cluster, leader, promote)).toBe('learnerBehind');
    expect(await refused(cluster, leader, [{ kind: 'promote', node: 5 }])).toBe('unknownNode');
    cluster.add(4);
    await cluster.commit('a', [4]);
    await cluster.changed(promote);
  });

  it('65: a change after which too few of the voters could be reached', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) return;
    cluster.node(a).crash();
    await cluster.tick(3 * ELECTION_TICKS);
    expect(await refused(cluster, leader, [{ kind: 'remove', node: b }])).toBe('wouldLoseQuorum');
    expect(
      await refused(
        cluster,
        leader,
        [1, 2, 3].map((node) => ({ kind: 'remove', node })),
      ),
    ).toBe('wouldLoseQuorum');
    // The dead one may go.
    await cluster.changed([{ kind: 'remove', node: a }]);
    await cluster.commit('b', [b]);
  });

  it('a change whose leader is deposed midway is of unknown outcome', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const answer = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => answer.result !== undefined);
    expect(refusalOf(answer)).toBe('unknownOutcome');
    await cluster.commit('others go on');
    cluster.heal();
    await cluster.commit('b', [1, 2, 3]);
    // It was overwritten: nobody ever took it for in effect.
    for (const node of cluster.up) expect(node.status.config.learners).toEqual([]);
  });
});

/** Two of three are being replaced, in one change that is held up when the leader acts by the joint configuration. */
async function replacingTwo(): Promise<{ cluster: Cluster; leader: Node; old: NodeId[] }> {
  const cluster = new Cluster({ voters: 3 });
  const leader = await cluster.elect();
  const old = [1, 2, 3].filter((id) => id !== leader.id);
  for (const id of [4, 5]) {
    cluster.add(id);
    await cluster.changed([{ kind: 'addLearner', node: id }]);
  }
  await cluster.commit('a', [1, 2, 3, 4, 5]);
  cluster.passes = () => !joins(leader);
  cluster.change(leader, [
    { kind: 'promote', node: 4 },
    { kind: 'promote', node: 5 },
    ...old.map((node) => ({ kind: 'remove', node }) as const),
  ]);
  await cluster.until(() => joins(leader));
  return { cluster, leader, old };
}

describe('a change under way', () => {
  it('61: commits nothing without a majority of the old voters', async () => {
    const { cluster, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    cluster.isolate(leader.id, 4, 5);
    leader.propose('new voters only');
    // Longer than it can lead without them.
    await cluster.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, 4, 5]) expect(cluster.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    cluster.heal();
    await cluster.until(() => cluster.leader !== undefined && !isJoint(cluster.leader.status.config));
    await cluster.commit('b', [leader.id, 4, 5]);
    expect(votersOf(cluster)).toEqual([leader.id, 4, 5].toSorted(ascending));
    for (const id of old) expect(cluster.node(id).isLeader).toBe(false);
  });

  it('61: commits nothing without a majority of the new voters', async () => {
    const { cluster, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    cluster.isolate(4, 5);
    leader.propose('old voters only');
    await cluster.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, ...old]) expect(cluster.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    cluster.heal();
    await cluster.commit('b', [leader.id, 4, 5]);
  });

  it('61: elects nobody without a majority of both', async () => {
    const { cluster, leader, old } = await replacingTwo();
    // Everybody who stays learns that the change is under way; that it could be completed, nobody does.
    cluster.passes = ({ from, to }) => !(old.includes(from) && to === leader.id);
    await cluster.until(() => joins(cluster.node(4)) && joins(cluster.node(5)));
    leader.crash();
    for (const id of old) cluster.node(id).crash();
    cluster.heal();
    await cluster.tick(10 * ELECTION_TICKS);
    expect(cluster.leader).toBeUndefined();
    leader.start();
    await cluster.tick(10 * ELECTION_TICKS);
    expect(cluster.leader).toBeUndefined();
    for (const id of old) cluster.node(id).start();
    await cluster.commit('b', [leader.id, 4, 5]);
  });
});

describe('a change and its crashes', () => {
  it('61: the joint configuration survives its leader: the next one leaves it', async () => {
    for (const fate of ['lost', 'kept'] as const) {
      const cluster = new Cluster({ voters: 3 });
      const leader = await cluster.elect();
      cluster.add(4);
      await cluster.changed([{ kind: 'addLearner', node: 4 }]);
      await cluster.commit('a', [4]);
      // Nothing of the leave gets out of the leader that proposes it.
      cluster.passes = ({ from }) => !(from === leader.id && joins(leader));
      const answer = cluster.change(leader, [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: leader.id },
      ]);
      await cluster.until(() => joins(leader));
      expect(answer.result).toBeUndefined();
      leader.crash(fate);
      cluster.heal();
      await cluster.until(
        () => cluster.leader !== undefined && !joins(cluster.leader) && votersOf(cluster).includes(4),
        2_000,
      );
      leader.start();
      await cluster.commit(
        'b',
        [2, 3, 4].filter((id) => votersOf(cluster).includes(id)),
      );
      expect(votersOf(cluster)).toEqual([1, 2, 3, 4].filter((id) => id !== leader.id));
    }
  });

  it('60: no campaign while a committed change is not applied', async () => {
    const cluster = new Cluster({ voters: 3, options: { applyBytesMax: 1 } });
    const leader = await cluster.elect();
    const follower = cluster.up.find(({ id }) => id !== leader.id);
    if (follower === undefined) return;
    // Its disk stands still, so what it knows to be committed cannot be applied.
    cluster.stalled.add(follower.id);
    const answer = cluster.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await cluster.until(() => answer.result?.ok === true);
    await cluster.tick(5);
    expect(follower.status.commit).toBeGreaterThan(follower.status.applied);
    cluster.isolate(follower.id);
    cluster.sent.length = 0;
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter((parcel) => parcel.from === follower.id && isCampaign(parcel))).toEqual([]);
    cluster.stalled.clear();
    await cluster.tick(5 * ELECTION_TICKS);
    expect(cluster.sent.filter((parcel) => parcel.from === follower.id && isCampaign(parcel))).not.toEqual(
      [],
    );
    cluster.heal();
    await cluster.commit('a', [1, 2, 3]);
  });

  it('61, 65: every node crashes at every step of a replacement, one at a time', async () => {
    // The number of messages that were delivered is the clock by which the crash happens.
    for (let after = 1; after <= 60; after += 1) {
      for (const victim of [1, 2, 3, 4]) {
        const cluster = new Cluster({ voters: 3, seed: after });
        await cluster.elect();
        cluster.add(4);
        await cluster.changed([{ kind: 'addLearner', node: 4 }]);
        await cluster.commit('a', [4]);
        const leader = await cluster.elect();
        const gone = [1, 2, 3].find((id) => id !== leader.id && id !== victim) ?? 0;
        let delivered = 0;
        cluster.passes = () => {
          delivered += 1;
          if (delivered === after) cluster.node(victim).crash(after % 2 === 0 ? 'lost' : 'kept');
          return cluster.node(victim).isUp || delivered > after;
        };
        cluster.change(leader, [
          { kind: 'promote', node: 4 },
          { kind: 'remove', node: gone },
        ]);
        await cluster.tick(3 * ELECTION_TICKS);
        if (!cluster.node(victim).isUp) cluster.node(victim).start();
        cluster.heal();
        await cluster.until(() => cluster.leader !== undefined && !isJoint(cluster.leader.status.config));
        await cluster.commit('b', votersOf(cluster));
        const voters = votersOf(cluster);
        expect([[1, 2, 3], [1, 2, 3, 4].filter((id) => id !== gone)]).toContainEqual(voters);
      }
    }
  });

  it('a restart finds the configuration in the log, and in the snapshot once there is one', async () => {
    for (const snapshotEveryBytes of [1 << 30, 100]) {
      const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes } });
      await cluster.join(4);
      for (let i = 0; i < 50; i += 1) await cluster.commit(`${i}`, [1, 2, 3, 4]);
      const meta = cluster.node(4).disk.get(GROUP)?.snapshot;
      expect(meta?.voters.toSorted(ascending)).toEqual(snapshotEveryBytes === 100 ? [1, 2, 3, 4] : undefined);
      for (const node of cluster.up) node.crash();
      for (const node of cluster.nodes.values()) node.start();
      await cluster.commit('again', [1, 2, 3, 4]);
      for (const node of cluster.up)
        expect(node.status.config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4]);
    }
  });

  it('63: a snapshot taken in a joint configuration brings it along', async () => {
    const cluster = new Cluster({ voters: 3, options: { snapshotEveryBytes: 1 } });
    const leader = await cluster.elect();
    const late = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    const gone = [1, 2, 3].find((id) => id !== leader.id && id !== late) ?? 0;
    cluster.isolate(late);
    // The leave cannot be committed without a majority of the old voters: hold it back from all disks but its own.
    const answer = cluster.change(leader, [{ kind: 'remove', node: gone }]);
    await cluster.until(() => isJoint(leader.status.config) || answer.result !== undefined);
    await cluster.tick(10);
    cluster.heal();
    await cluster.until(() => answer.result?.ok === true);
    await cluster.commit('a', [leader.id, late]);
    const installed = cluster.node(late);
    expect(installed.status.config.voters.toSorted(ascending)).toEqual([leader.id, late].toSorted(ascending));
    expect(installed.app.config).toEqual(installed.status.config);
  });
});

describe('nodes far behind, and nodes long gone', () => {
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

  it('65, 86: a node that was removed while away comes back and disturbs nobody', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const gone = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    cluster.isolate(gone);
    await cluster.changed([{ kind: 'remove', node: gone }]);
    await cluster.commit('a');
    // It believes that it belongs here, and asks for votes all the time.
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
    // And cannot lead when the leader is gone, for its log is old.
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
    if (gone === undefined || stays === undefined) return;
    await cluster.changed([{ kind: 'remove', node: gone }]);
    cluster.heal();
    await cluster.commit('a', [stays]);
    expect(cluster.node(stays).status.config.voters).not.toContain(gone);
  });
});
