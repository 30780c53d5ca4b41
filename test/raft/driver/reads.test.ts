/** Linearizable reads: an index is given out only by a leader that a quorum confirmed after the read was asked for. */
import { describe, expect, it } from 'vitest';
import { assert } from '../../../raft/assert.ts';
import type { Message } from '../../../raft/types.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS, type Node, type Parcel, World } from './members.ts';

/** Asks; what it gets comes later. */
function read(node: Node): { answered: boolean; index?: number | undefined } {
  const answer: { answered: boolean; index?: number | undefined } = { answered: false };
  node.raft.readIndex(GROUP, (index) => {
    assert(!answer.answered, 'a read is answered once');
    answer.answered = true;
    answer.index = index;
    assert(node.app.index >= (index ?? 0), 'an index that is given out is applied');
  });
  return answer;
}

const messageOf = ({ message }: Parcel): Message | undefined =>
  message.kind === 'message' ? message.message : undefined;

describe('reads', () => {
  it('100: are at everything that was committed before they were asked for', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    for (let i = 0; i < 5; i += 1) {
      await world.commit(`${i}`);
      const answer = read(leader);
      await world.settle();
      expect(answer.index).toBe(leader.status.commit);
    }
  });

  it('100: are answered at once by a group of one', async () => {
    const world = new World({ voters: 1 });
    const leader = await world.elect();
    const answer = read(leader);
    await world.settle();
    expect(answer.index).toBe(leader.status.commit);
  });

  it('100, 104: by a follower or a learner are not answered with an index', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.add(4);
    await world.changed([{ kind: 'addLearner', node: 4 }]);
    for (const node of world.up.filter(({ id }) => id !== leader.id)) {
      const answer = read(node);
      await world.settle();
      expect(answer).toEqual({ answered: true, index: undefined });
    }
  });

  it('many that come together are one question', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.sent.length = 0;
    const answers = Array.from({ length: 100 }, () => read(leader));
    await world.settle();
    for (const { index } of answers) expect(index).toBe(leader.status.commit);
    expect(world.sent.filter((parcel) => messageOf(parcel)?.type === 'heartbeat')).toHaveLength(2);
  });

  it('101: before the first commit of a term wait for it', async () => {
    const world = new World({ voters: 3 });
    const old = await world.elect();
    await world.commit('a', [1, 2, 3]);
    const { lastIndex } = old.status;
    old.crash();
    world.passes = (parcel) => messageOf(parcel)?.type !== 'appendResponse';
    await world.until(() => world.leader !== undefined);
    const { leader } = world;
    if (leader === undefined) return;
    const answer = read(leader);
    await world.tick(HEARTBEAT_TICKS);
    expect(answer.answered).toBe(false);
    world.heal();
    await world.until(() => answer.answered);
    // The no-op stands behind everything that earlier leaders can have committed.
    expect(answer.index).toBeGreaterThan(lastIndex);
  });

  it('102: a later one is not confirmed by answers to an earlier one', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    // All answers to the first read are on their way for long.
    const late: Parcel[] = [];
    world.passes = (parcel) => {
      const isAnswer = messageOf(parcel)?.type === 'heartbeatResponse';
      if (isAnswer) late.push(parcel);
      return !isAnswer;
    };
    const first = read(leader);
    await world.settle();
    expect(late).not.toEqual([]);
    // Cut off now; the others may elect someone and commit. The client tries again.
    world.isolate(leader.id);
    const again = read(leader);
    await world.settle();
    world.heal();
    for (const parcel of late) leader.raft.receive([parcel.message]);
    world.isolate(leader.id);
    await world.settle();
    expect(first.index).toBe(leader.status.commit);
    expect(again.answered).toBe(false);
    await world.until(() => again.answered);
    expect(again.index).toBeUndefined();
  });

  it('an answer to a later one confirms an earlier one, whose own answers were lost', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.passes = (parcel) => messageOf(parcel)?.type !== 'heartbeatResponse';
    const first = read(leader);
    await world.settle();
    world.heal();
    const second = read(leader);
    await world.settle();
    expect([first.index, second.index]).toEqual([leader.status.commit, leader.status.commit]);
  });

  it('a lost question is asked again with the next heartbeat', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    world.isolate(leader.id);
    const answer = read(leader);
    await world.settle();
    world.heal();
    await world.tick(HEARTBEAT_TICKS);
    expect(answer.index).toBe(leader.status.commit);
  });

  it('104: an old leader gives out no index, and forgets who asked when it learns what it is', async () => {
    const world = new World({ voters: 3 });
    const old = await world.elect();
    world.isolate(old.id);
    const answers = [read(old), read(old)];
    await world.until(() => world.leader !== undefined && world.leader.id !== old.id);
    await world.commit('newer');
    const late = read(old);
    await world.tick(2 * ELECTION_TICKS);
    for (const answer of [...answers, late]) expect(answer).toEqual({ answered: true, index: undefined });
  });

  it('103: learners confirm nothing, and both sets of voters have to', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    const followers = [1, 2, 3].filter((id) => id !== leader.id);
    for (const id of [4, 5]) {
      world.add(id);
      await world.changed([{ kind: 'addLearner', node: id }]);
    }
    await world.commit('a', [1, 2, 3, 4, 5]);
    world.isolate(leader.id, 4, 5);
    const alone = read(leader);
    await world.settle();
    expect(alone.answered).toBe(false);
    world.heal();
    await world.tick(HEARTBEAT_TICKS);
    expect(alone.index).toBeDefined();
    // Now with the learners as voters, and the change held up between its two steps.
    world.passes = () => leader.status.config.outgoing.length === 0;
    world.change(leader, [
      { kind: 'promote', node: 4 },
      { kind: 'promote', node: 5 },
      ...followers.map((node) => ({ kind: 'remove', node }) as const),
    ]);
    await world.until(() => leader.status.config.outgoing.length > 0);
    world.isolate(leader.id, 4, 5);
    const joint = read(leader);
    await world.settle();
    expect(joint.answered).toBe(false);
    world.heal();
    await world.tick(HEARTBEAT_TICKS);
    expect(joint.index).toBeDefined();
  });

  it('103: more voters than before must confirm a read that was asked before they came', async () => {
    const world = new World({ voters: 1 });
    const leader = await world.elect();
    world.add(2);
    await world.changed([{ kind: 'addLearner', node: 2 }]);
    await world.commit('a', [2]);
    await world.changed([{ kind: 'promote', node: 2 }]);
    world.isolate(leader.id);
    const answer = read(leader);
    await world.settle();
    expect(answer.answered).toBe(false);
    world.heal();
    await world.tick(HEARTBEAT_TICKS);
    expect(answer.index).toBe(leader.status.commit);
  });

  it('are done only when their index is applied', async () => {
    const world = new World({ voters: 3 });
    const leader = await world.elect();
    await world.commit('a', [1, 2, 3]);
    world.stalled.add(leader.id);
    leader.propose('committed by the others');
    await world.settle();
    // Committed by two of three, but not on the leader's own disk, so not applied.
    expect(leader.status.commit).toBeGreaterThan(leader.status.applied);
    const answer = read(leader);
    await world.settle();
    expect(answer.answered).toBe(false);
    world.stalled.clear();
    await world.settle();
    expect(answer.index).toBe(leader.status.commit);
  });
});
