/** Members that come and go while the group works, through the real driver (see members.ts for what is checked). */
import { describe, expect, it } from 'vitest';
import { isJoint } from '../../raft/membership.ts';
import type { NodeId } from '../../raft/types.ts';
import { ELECTION_TICKS, GROUP, type Node, type Parcel, World } from './driver/members.ts';

const ascending = (a: NodeId, b: NodeId): number => a - b;
const joins = (node: Node): boolean => isJoint(node.status.config);
const votersOf = (world: World): readonly NodeId[] =>
  world.leader?.status.config.voters.toSorted(ascending) ?? [];

function refusalOf(answer: ReturnType<World['change']>): string | undefined {
  return answer.result?.ok === false ? answer.result.reason : undefined;
}

/** Runs turns but lets nothing out or onto a disk: what is asked of a node now is decided by what it knows now. */
async function refused(
  world: World,
  node: Node,
  change: Parameters<World['change']>[1],
  epoch?: number,
): Promise<string | undefined> {
  const answer = world.change(node, change, epoch);
  await world.settle();
  return refusalOf(answer);
}

const isVote = ({ message }: Parcel): boolean =>
  message.kind === 'message' && (message.message.type === 'vote' || message.message.type === 'preVote');

describe('changing members', () => {
  it('61: two nodes are added, one at a time, and count', async () => {
    const world = new World({ voters: 3 });
    await world.commit('a');
    await world.join(4);
    await world.join(5);
    expect(votersOf(world)).toEqual([1, 2, 3, 4, 5]);
    await world.commit('b', [1, 2, 3, 4, 5]);
    // Three of five are still a quorum: two of the first three may go.
    world.node(1).crash();
    world.node(2).crash();
    await world.commit('c', [3, 4, 5]);
  });

  it('65: a node is replaced in one change, with the quorum never smaller than three', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const [gone] = [1, 2, 3].filter((id) => id !== leader.id);
    if (gone === undefined) return;
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    await world.commit('a', [4]);
    const config = await world.changed([
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ]);
    expect(config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4].filter((id) => id !== gone));
    expect(config.outgoing).toEqual([]);
    await world.commit('b', [4]);
    // The application of everybody saw the joint configuration first.
    expect(world.node(4).app.configs.some(isJoint)).toBe(true);
    expect(world.node(4).status.config).toEqual(config);
  });

  it('59: a leader that is removed steps down once that is complete, and does not count itself', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const others = [1, 2, 3].filter((id) => id !== leader.id);
    const result = await world.changed([{ kind: 'remove', node: leader.id }]);
    expect(result.voters.toSorted(ascending)).toEqual(others);
    expect(leader.isLeader).toBe(false);
    const term = leader.status.term;
    await world.commit('after', others);
    expect(world.leader?.id).not.toBe(leader.id);
    await world.tick(5 * ELECTION_TICKS);
    // It was told; it neither campaigns nor hears of anything any more.
    expect(leader.status).toMatchObject({ role: 'follower', term });
    expect(leader.app.commands).not.toContain('after');
  });

  it('59: the leader of two is removed, and the other goes on alone', async () => {
    const world = new World({ voters: 2 });
    const leader = await world.elect();
    const other = 3 - leader.id;
    await world.changed([{ kind: 'remove', node: leader.id }]);
    leader.crash();
    await world.commit('alone', [other]);
    expect(votersOf(world)).toEqual([other]);
  });

  it('59, 54: a removed leader with the longest log, cut off too early, tells the other what it knows instead of voting', async () => {
    for (const restarts of [false, true]) {
      const world = new World({ voters: 2 });
      const leader = await world.elect();
      const other = world.node(3 - leader.id);
      const answer = world.change(leader, [{ kind: 'remove', node: leader.id }]);
      // Nothing gets out of the leader once it knows that the change is committed.
      world.passes = () => isJoint(leader.status.config) || leader.status.config.voters.includes(leader.id);
      await world.until(
        () => !leader.status.config.voters.includes(leader.id) && !isJoint(leader.status.config),
      );
      leader.propose('never committed');
      await world.until(() => answer.result !== undefined);
      expect(refusalOf(answer)).toBe('unknownOutcome');
      expect(isJoint(other.status.config)).toBe(true);
      expect(leader.status.lastIndex).toBeGreaterThan(other.status.lastIndex);
      if (restarts) {
        leader.crash();
        leader.start();
      }
      world.heal();
      await world.commit('alone', [other.id]);
      expect(votersOf(world)).toEqual([other.id]);
    }
  });

  it('58: what two of four could not commit, two of three can', async () => {
    const world = new World({ voters: 4 });
    const leader = await world.elect();
    const [a, b, c] = [1, 2, 3, 4].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined || c === undefined) return;
    // With one node down four still have a quorum of three; the removal makes two of three enough.
    world.node(a).crash();
    await world.changed([{ kind: 'remove', node: a }]);
    world.node(b).crash();
    await world.commit('smaller quorum', [leader.id, c]);
    expect(votersOf(world)).toHaveLength(3);
  });

  it('65: down to one node and back to three', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    for (const id of [1, 2, 3]) {
      if (id === leader.id) continue;
      await world.changed([{ kind: 'remove', node: id }]);
      world.node(id).crash();
    }
    expect(votersOf(world)).toEqual([leader.id]);
    await world.commit('alone');
    await world.join(4);
    await world.join(5);
    expect(votersOf(world)).toEqual([leader.id, 4, 5].toSorted(ascending));
    leader.crash();
    await world.commit('without the first', [4, 5]);
  });

  it('57: adding members does not make a leader step down', async () => {
    const world = new World({ voters: 1 });
    const leader = await world.elect();
    const { term } = leader.status;
    // The learner is never started: it is a member that never answers.
    await world.changed([{ kind: 'addLearner', node: 2 }]);
    await world.tick(5 * ELECTION_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    await world.commit('goes on');
  });

  it('17: learners get everything, count for nothing and never campaign', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    for (const id of [4, 5, 6, 7]) {
      world.add(id);
      await world.changed([{ kind: 'addLearner', node: id }]);
    }
    await world.commit('a', [1, 2, 3, 4, 5, 6, 7]);
    const followers = [1, 2, 3].filter((id) => id !== leader.id);
    for (const id of followers) world.node(id).crash();
    leader.propose('no quorum');
    await world.tick(5 * ELECTION_TICKS);
    expect(world.appliedMax).toBe(world.node(4).app.index);
    expect(world.node(4).app.commands).not.toContain('no quorum');
    leader.crash();
    world.sent.length = 0;
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter(isVote)).toEqual([]);
  });

  it('18, 94: a promoted node that does not know it yet grants the vote that is needed', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    await world.commit('a', [4]);
    const [b, c] = [1, 2, 3].filter((id) => id !== leader.id);
    if (b === undefined || c === undefined) return;
    // Node 4 hears no word of the change being committed.
    const { lastIndex } = leader.status;
    world.passes = ({ to, message }) =>
      to !== 4 ||
      message.kind !== 'message' ||
      !('commit' in message.message && message.message.commit > lastIndex);
    await world.changed([{ kind: 'promote', node: 4 }]);
    expect(world.node(4).status.config.learners).toEqual([4]);
    leader.crash();
    world.heal();
    // Of the four voters these three are left, and all three votes are needed.
    await world.commit('b', [b, c, 4]);
  });

  it('57: a demoted voter learns on, and nothing is sent to a node that was removed', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) return;
    const config = await world.changed([{ kind: 'demote', node: a }]);
    expect(config.learners).toEqual([a]);
    await world.commit('still learns', [a]);
    await world.changed([{ kind: 'remove', node: a }]);
    expect([...leader.status.match.keys()].toSorted(ascending)).toEqual([leader.id, b].toSorted(ascending));
    await world.commit('x', [leader.id, b]);
    expect(world.node(a).app.commands).not.toContain('x');
  });
});

describe('what a node says of the members', () => {
  it('the configuration in effect, and whether a change is under way', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const [follower, other] = world.up.filter(({ id }) => id !== leader.id);
    if (follower === undefined || other === undefined) return;
    expect([leader.raft.configOf(9), leader.raft.isChanging(9)]).toEqual([undefined, false]);
    expect(leader.raft.configOf(GROUP)).toEqual({ epoch: 0, voters: [1, 2, 3], outgoing: [], learners: [] });
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    const answer = world.change(leader, [{ kind: 'remove', node: other.id }]);
    // From the moment it is asked for until it is answered, on the leader; elsewhere while two sets decide.
    expect(leader.raft.isChanging(GROUP)).toBe(true);
    expect(follower.raft.isChanging(GROUP)).toBe(false);
    await world.until(() => answer.result !== undefined);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
    expect(leader.raft.configOf(GROUP)).toBe(leader.app.config);
    await world.until(() => !follower.raft.isChanging(GROUP));
    // Whoever lost the lead with a change in its log does not wait for it for ever.
    world.isolate(leader.id);
    world.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await world.until(() => !leader.isLeader);
    expect(leader.raft.isChanging(GROUP)).toBe(false);
  });
});

describe('what is refused, and why', () => {
  it('66: by a node that does not lead', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const follower = world.up.find(({ id }) => id !== leader.id);
    expect(follower && (await refused(world, follower, [{ kind: 'addLearner', node: 4 }]))).toBe('notLeader');
  });

  it('56: while a change is pending, or may be', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.isolate(leader.id);
    const first = world.change(leader, [{ kind: 'addLearner', node: 4 }]);
    expect(await refused(world, leader, [{ kind: 'addLearner', node: 5 }])).toBe('changePending');
    expect(first.result).toBeUndefined();
    world.heal();
    await world.until(() => first.result?.ok === true);
    expect(await refused(world, leader, [{ kind: 'addLearner', node: 4 }])).toBe('alreadyMember');
  });

  it('56: a new leader assumes a change is pending until its own first entry is applied', async () => {
    const world = new World({ voters: 3 });
    const old = await world.elect();
    // The new leader wins its votes and can commit nothing.
    old.crash();
    world.passes = ({ message }) => message.kind !== 'message' || message.message.type !== 'appendResponse';
    await world.until(() => world.leader !== undefined);
    const { leader } = world;
    expect(leader && (await refused(world, leader, [{ kind: 'addLearner', node: 4 }]))).toBe('changePending');
    world.heal();
    await world.changed([{ kind: 'addLearner', node: 4 }]);
  });

  it('66: in the name of a placement that a newer one has replaced, whoever leads by then', async () => {
    const world = new World({ voters: 3, options: { snapshotEveryBytes: 300 } });
    world.add(4);
    // One version of the placement asks for two changes: enter and catch up, then replace.
    await world.changed([{ kind: 'addLearner', node: 4 }], 7);
    await world.commit('a', [4]);
    const old = await world.elect();
    const gone = [1, 2, 3].find((id) => id !== old.id) ?? 0;
    const replace = [
      { kind: 'promote', node: 4 },
      { kind: 'remove', node: gone },
    ] as const;
    expect(await world.changed(replace, 7)).toMatchObject({ epoch: 7, outgoing: [] });
    const back = [{ kind: 'addLearner', node: gone }] as const;
    expect(await refused(world, old, back, 6)).toBe('staleEpoch');
    // The next leader knows it from its log, and after a restart from its snapshot.
    old.crash();
    const next = await world.elect();
    expect(next.id).not.toBe(old.id);
    expect(await refused(world, next, back, 6)).toBe('staleEpoch');
    for (let i = 0; i < 20; i += 1) await world.commit(`${i}`);
    expect(next.disk.get(GROUP)?.snapshot?.epoch).toBe(7);
    old.start();
    for (const id of votersOf(world)) {
      world.node(id).crash();
      world.node(id).start();
    }
    expect(await refused(world, await world.elect(), back, 6)).toBe('staleEpoch');
    expect(await world.changed(back, 8)).toMatchObject({ epoch: 8, learners: [gone] });
  });

  it('61: a promotion of a learner that has not caught up, or is silent', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    const promote = [{ kind: 'promote', node: 4 }] as const;
    expect(await refused(world, leader, promote)).toBe('learnerBehind');
    expect(await refused(world, leader, [{ kind: 'promote', node: 5 }])).toBe('unknownNode');
    world.add(4);
    await world.commit('a', [4]);
    await world.changed(promote);
  });

  it('65: a change after which too few of the voters could be reached', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const [a, b] = [1, 2, 3].filter((id) => id !== leader.id);
    if (a === undefined || b === undefined) return;
    world.node(a).crash();
    await world.tick(3 * ELECTION_TICKS);
    expect(await refused(world, leader, [{ kind: 'remove', node: b }])).toBe('wouldLoseQuorum');
    expect(
      await refused(
        world,
        leader,
        [1, 2, 3].map((node) => ({ kind: 'remove', node })),
      ),
    ).toBe('wouldLoseQuorum');
    // The dead one may go.
    await world.changed([{ kind: 'remove', node: a }]);
    await world.commit('b', [b]);
  });

  it('a change whose leader is deposed midway is of unknown outcome', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.isolate(leader.id);
    const answer = world.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await world.until(() => answer.result !== undefined);
    expect(refusalOf(answer)).toBe('unknownOutcome');
    await world.commit('others go on');
    world.heal();
    await world.commit('b', [1, 2, 3]);
    // It was overwritten: nobody ever took it for in effect.
    for (const node of world.up) expect(node.status.config.learners).toEqual([]);
  });
});

/** Two of three are being replaced, in one change that is held up when the leader acts by the joint configuration. */
async function replacingTwo(): Promise<{ world: World; leader: Node; old: NodeId[] }> {
  const world = new World({ voters: 3 });
  const leader = await world.elect();
  const old = [1, 2, 3].filter((id) => id !== leader.id);
  for (const id of [4, 5]) {
    world.add(id);
    await world.changed([{ kind: 'addLearner', node: id }]);
  }
  await world.commit('a', [1, 2, 3, 4, 5]);
  world.passes = () => !joins(leader);
  world.change(leader, [
    { kind: 'promote', node: 4 },
    { kind: 'promote', node: 5 },
    ...old.map((node) => ({ kind: 'remove', node }) as const),
  ]);
  await world.until(() => joins(leader));
  return { world, leader, old };
}

describe('a change under way', () => {
  it('61: commits nothing without a majority of the old voters', async () => {
    const { world, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    world.isolate(leader.id, 4, 5);
    leader.propose('new voters only');
    // Longer than it can lead without them.
    await world.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, 4, 5]) expect(world.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    world.heal();
    await world.until(() => world.leader !== undefined && !isJoint(world.leader.status.config));
    await world.commit('b', [leader.id, 4, 5]);
    expect(votersOf(world)).toEqual([leader.id, 4, 5].toSorted(ascending));
    for (const id of old) expect(world.node(id).isLeader).toBe(false);
  });

  it('61: commits nothing without a majority of the new voters', async () => {
    const { world, leader, old } = await replacingTwo();
    const { commit } = leader.status;
    world.isolate(4, 5);
    leader.propose('old voters only');
    await world.tick(3 * ELECTION_TICKS);
    for (const id of [leader.id, ...old]) expect(world.node(id).status.commit).toBeLessThanOrEqual(commit);
    expect(leader.isLeader).toBe(false);
    world.heal();
    await world.commit('b', [leader.id, 4, 5]);
  });

  it('61: elects nobody without a majority of both', async () => {
    const { world, leader, old } = await replacingTwo();
    // Everybody who stays learns that the change is under way; that it could be completed, nobody does.
    world.passes = ({ from, to }) => !(old.includes(from) && to === leader.id);
    await world.until(() => joins(world.node(4)) && joins(world.node(5)));
    leader.crash();
    for (const id of old) world.node(id).crash();
    world.heal();
    await world.tick(10 * ELECTION_TICKS);
    expect(world.leader).toBeUndefined();
    leader.start();
    await world.tick(10 * ELECTION_TICKS);
    expect(world.leader).toBeUndefined();
    for (const id of old) world.node(id).start();
    await world.commit('b', [leader.id, 4, 5]);
  });
});

describe('a change and its crashes', () => {
  it('61: the joint configuration survives its leader: the next one leaves it', async () => {
    for (const fate of ['lost', 'kept'] as const) {
      const world = new World({ voters: 3 });
      const leader = await world.elect();
      world.add(4);
      await world.changed([{ kind: 'addLearner', node: 4 }]);
      await world.commit('a', [4]);
      // Nothing of the leave gets out of the leader that proposes it.
      world.passes = ({ from }) => !(from === leader.id && joins(leader));
      const answer = world.change(leader, [
        { kind: 'promote', node: 4 },
        { kind: 'remove', node: leader.id },
      ]);
      await world.until(() => joins(leader));
      expect(answer.result).toBeUndefined();
      leader.crash(fate);
      world.heal();
      await world.until(
        () => world.leader !== undefined && !joins(world.leader) && votersOf(world).includes(4),
        2_000,
      );
      leader.start();
      await world.commit(
        'b',
        [2, 3, 4].filter((id) => votersOf(world).includes(id)),
      );
      expect(votersOf(world)).toEqual([1, 2, 3, 4].filter((id) => id !== leader.id));
    }
  });

  it('60: no campaign while a committed change is not applied', async () => {
    const world = new World({ voters: 3, options: { applyBytesMax: 1 } });
    const leader = await world.elect();
    const follower = world.up.find(({ id }) => id !== leader.id);
    if (follower === undefined) return;
    // Its disk stands still, so what it knows to be committed cannot be applied.
    world.stalled.add(follower.id);
    const answer = world.change(leader, [{ kind: 'addLearner', node: 4 }]);
    await world.until(() => answer.result?.ok === true);
    await world.tick(5);
    expect(follower.status.commit).toBeGreaterThan(follower.status.applied);
    world.isolate(follower.id);
    world.sent.length = 0;
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter((parcel) => parcel.from === follower.id && isVote(parcel))).toEqual([]);
    world.stalled.clear();
    await world.tick(5 * ELECTION_TICKS);
    expect(world.sent.filter((parcel) => parcel.from === follower.id && isVote(parcel))).not.toEqual([]);
    world.heal();
    await world.commit('a', [1, 2, 3]);
  });

  it('61, 65: every node crashes at every step of a replacement, one at a time', async () => {
    // The number of messages that were delivered is the clock by which the crash happens.
    for (let after = 1; after <= 60; after += 1) {
      for (const victim of [1, 2, 3, 4]) {
        const world = new World({ voters: 3, seed: after });
        await world.elect();
        world.add(4);
        await world.changed([{ kind: 'addLearner', node: 4 }]);
        await world.commit('a', [4]);
        const leader = await world.elect();
        const gone = [1, 2, 3].find((id) => id !== leader.id && id !== victim) ?? 0;
        let delivered = 0;
        world.passes = () => {
          delivered += 1;
          if (delivered === after) world.node(victim).crash(after % 2 === 0 ? 'lost' : 'kept');
          return world.node(victim).isUp || delivered > after;
        };
        world.change(leader, [
          { kind: 'promote', node: 4 },
          { kind: 'remove', node: gone },
        ]);
        await world.tick(3 * ELECTION_TICKS);
        if (!world.node(victim).isUp) world.node(victim).start();
        world.heal();
        await world.until(() => world.leader !== undefined && !isJoint(world.leader.status.config));
        await world.commit('b', votersOf(world));
        const voters = votersOf(world);
        expect([[1, 2, 3], [1, 2, 3, 4].filter((id) => id !== gone)]).toContainEqual(voters);
      }
    }
  });

  it('a restart finds the configuration in the log, and in the snapshot once there is one', async () => {
    for (const snapshotEveryBytes of [1 << 30, 100]) {
      const world = new World({ voters: 3, options: { snapshotEveryBytes } });
      await world.join(4);
      for (let i = 0; i < 50; i += 1) await world.commit(`${i}`, [1, 2, 3, 4]);
      const meta = world.node(4).disk.get(GROUP)?.snapshot;
      expect(meta?.voters.toSorted(ascending)).toEqual(snapshotEveryBytes === 100 ? [1, 2, 3, 4] : undefined);
      for (const node of world.up) node.crash();
      for (const node of world.nodes.values()) node.start();
      await world.commit('again', [1, 2, 3, 4]);
      for (const node of world.up)
        expect(node.status.config.voters.toSorted(ascending)).toEqual([1, 2, 3, 4]);
    }
  });

  it('63: a snapshot taken in a joint configuration brings it along', async () => {
    const world = new World({ voters: 3, options: { snapshotEveryBytes: 1 } });
    const leader = await world.elect();
    const late = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    const gone = [1, 2, 3].find((id) => id !== leader.id && id !== late) ?? 0;
    world.isolate(late);
    // The leave cannot be committed without a majority of the old voters: hold it back from all disks but its own.
    const answer = world.change(leader, [{ kind: 'remove', node: gone }]);
    await world.until(() => isJoint(leader.status.config) || answer.result !== undefined);
    await world.tick(10);
    world.heal();
    await world.until(() => answer.result?.ok === true);
    await world.commit('a', [leader.id, late]);
    const installed = world.node(late);
    expect(installed.status.config.voters.toSorted(ascending)).toEqual([leader.id, late].toSorted(ascending));
    expect(installed.app.config).toEqual(installed.status.config);
  });
});

describe('nodes far behind, and nodes long gone', () => {
  it('73: a learner gets a snapshot, then the log, and is promoted', async () => {
    const world = new World({ voters: 3, options: { snapshotEveryBytes: 300 } });
    for (let i = 0; i < 30; i += 1) await world.commit(`${i}`);
    const leader = await world.elect();
    expect(leader.status.logStart).toBeGreaterThan(0);
    await world.join(4);
    expect(world.sent.some(({ to, message }) => to === 4 && message.kind === 'chunk')).toBe(true);
    world.node(leader.id).crash();
    await world.commit('b', [4]);
  });

  it('65, 86: a node that was removed while away comes back and disturbs nobody', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const gone = [1, 2, 3].find((id) => id !== leader.id) ?? 0;
    world.isolate(gone);
    await world.changed([{ kind: 'remove', node: gone }]);
    await world.commit('a');
    // It believes that it belongs here, and asks for votes all the time.
    await world.tick(5 * ELECTION_TICKS);
    const { term } = leader.status;
    world.heal();
    world.sent.length = 0;
    await world.tick(20 * ELECTION_TICKS);
    expect(world.sent.some((parcel) => parcel.from === gone && isVote(parcel))).toBe(true);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    world.node(gone).crash();
    world.node(gone).start();
    await world.tick(20 * ELECTION_TICKS);
    expect(leader.status).toMatchObject({ role: 'leader', term });
    // And cannot lead when the leader is gone, for its log is old.
    leader.crash();
    await world.tick(20 * ELECTION_TICKS);
    expect(world.leader).toBeUndefined();
    leader.start();
    await world.commit('b');
    expect(world.node(gone).app.commands).not.toContain('b');
  });

  it('65: a change during a partition is completed by the majority, and the minority follows', async () => {
    const world = new World({ voters: 5 });
    const leader = await world.elect();
    const minority = [1, 2, 3, 4, 5].filter((id) => id !== leader.id).slice(0, 2);
    world.isolate(...minority);
    const [gone, stays] = minority;
    if (gone === undefined || stays === undefined) return;
    await world.changed([{ kind: 'remove', node: gone }]);
    world.heal();
    await world.commit('a', [stays]);
    expect(world.node(stays).status.config.voters).not.toContain(gone);
  });
});
