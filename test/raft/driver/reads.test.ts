/** Linearizable reads: only a leader that a quorum confirmed after the request gives out an index. */
import { describe, expect, it } from 'vitest';
import { assert } from '../../../raft/assert.ts';
import { Cluster } from './cluster.ts';
import type { Node } from './node.ts';
import { ELECTION_TICKS, GROUP, HEARTBEAT_TICKS } from './options.ts';
import { typeOf } from './parcel.ts';

/** Asks for an index; the answer comes later. */
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

describe('reads', () => {
  it('100: see everything that was committed before they were asked for', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    for (let i = 0; i < 5; i += 1) {
      await cluster.commit(`${i}`);
      const answer = read(leader);
      await cluster.settle();
      expect(answer.index).toBe(leader.status.commit);
    }
  });

  it('100: are answered at once by a group of one', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    const answer = read(leader);
    await cluster.settle();
    expect(answer.index).toBe(leader.status.commit);
  });

  it('100, 104: are not answered with an index by a follower or a learner', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.joinAsLearner(4);
    for (const node of cluster.up.filter(({ id }) => id !== leader.id)) {
      const answer = read(node);
      await cluster.settle();
      expect(answer).toEqual({ answered: true, index: undefined });
    }
  });

  it('that come together are confirmed by one question to the followers', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.sent.length = 0;
    const answers = Array.from({ length: 100 }, () => read(leader));
    await cluster.settle();
    for (const { index } of answers) expect(index).toBe(leader.status.commit);
    expect(cluster.sent.filter((parcel) => typeOf(parcel) === 'heartbeat')).toHaveLength(2);
  });

  it('that are asked for while another is answered begin with the next turn', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    let second: ReturnType<typeof read> | undefined;
    leader.raft.readIndex(GROUP, () => {
      second = read(leader);
    });
    await cluster.settle();
    expect(second?.index).toBe(leader.status.commit);
  });

  it('101: wait for the first commit of a term', async () => {
    const cluster = new Cluster({ voters: 3 });
    const old = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    const { lastIndex } = old.status;
    old.crash();
    cluster.passes = (parcel) => typeOf(parcel) !== 'appendResponse';
    await cluster.until(() => cluster.leader !== undefined);
    const { leader } = cluster;
    assert(leader !== undefined, 'somebody leads');
    const answer = read(leader);
    await cluster.tick(HEARTBEAT_TICKS);
    expect(answer.answered).toBe(false);
    cluster.heal();
    await cluster.until(() => answer.answered);
    // The no-op follows everything that earlier leaders can have committed.
    expect(answer.index).toBeGreaterThan(lastIndex);
  });

  it('102: are not confirmed by answers to an earlier read', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    // All answers to the first read are on their way for long.
    const late = cluster.hold((parcel) => typeOf(parcel) === 'heartbeatResponse');
    const first = read(leader);
    await cluster.settle();
    expect(late).not.toEqual([]);
    // Cut off now; the others may elect someone and commit. The client tries again.
    cluster.isolate(leader.id);
    const again = read(leader);
    await cluster.settle();
    cluster.heal();
    for (const parcel of late) leader.raft.receive([parcel.message]);
    cluster.isolate(leader.id);
    await cluster.settle();
    expect(first.index).toBe(leader.status.commit);
    expect(again.answered).toBe(false);
    await cluster.until(() => again.answered);
    expect(again.index).toBeUndefined();
  });

  it('whose own answers were lost are confirmed by an answer to a later read', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.passes = (parcel) => typeOf(parcel) !== 'heartbeatResponse';
    const first = read(leader);
    await cluster.settle();
    cluster.heal();
    const second = read(leader);
    await cluster.settle();
    expect([first.index, second.index]).toEqual([leader.status.commit, leader.status.commit]);
  });

  it('repeat a lost question with the next heartbeat', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    cluster.isolate(leader.id);
    const answer = read(leader);
    await cluster.settle();
    cluster.heal();
    await cluster.tick(HEARTBEAT_TICKS);
    expect(answer.index).toBe(leader.status.commit);
  });

  it('104: fail when a deposed leader learns of it, and get no index from it', async () => {
    const cluster = new Cluster({ voters: 3 });
    const old = await cluster.elect();
    cluster.isolate(old.id);
    const answers = [read(old), read(old)];
    await cluster.until(() => cluster.leader !== undefined && cluster.leader.id !== old.id);
    await cluster.commit('newer');
    const late = read(old);
    await cluster.tick(2 * ELECTION_TICKS);
    for (const answer of [...answers, late]) expect(answer).toEqual({ answered: true, index: undefined });
  });

  it('103: are confirmed by both sets of voters, and never by learners', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    const followers = [1, 2, 3].filter((id) => id !== leader.id);
    for (const id of [4, 5]) {
      await cluster.joinAsLearner(id);
    }
    await cluster.commit('a', [1, 2, 3, 4, 5]);
    cluster.isolate(leader.id, 4, 5);
    const alone = read(leader);
    await cluster.settle();
    expect(alone.answered).toBe(false);
    cluster.heal();
    await cluster.tick(HEARTBEAT_TICKS);
    expect(alone.index).toBeDefined();
    // Now with the learners as voters, and the change held up between its two steps.
    cluster.passes = () => leader.status.config.outgoing.length === 0;
    cluster.change(leader, [
      { kind: 'promote', node: 4 },
      { kind: 'promote', node: 5 },
      ...followers.map((node) => ({ kind: 'remove', node }) as const),
    ]);
    await cluster.until(() => leader.status.config.outgoing.length > 0);
    cluster.isolate(leader.id, 4, 5);
    const joint = read(leader);
    await cluster.settle();
    expect(joint.answered).toBe(false);
    cluster.heal();
    await cluster.tick(HEARTBEAT_TICKS);
    expect(joint.index).toBeDefined();
  });

  it('103: need the voters that were added after they were asked for', async () => {
    const cluster = new Cluster({ voters: 1 });
    const leader = await cluster.elect();
    await cluster.joinAsLearner(2);
    await cluster.commit('a', [2]);
    await cluster.changed([{ kind: 'promote', node: 2 }]);
    cluster.isolate(leader.id);
    const answer = read(leader);
    await cluster.settle();
    expect(answer.answered).toBe(false);
    cluster.heal();
    await cluster.tick(HEARTBEAT_TICKS);
    expect(answer.index).toBe(leader.status.commit);
  });

  it('are done only when their index is applied', async () => {
    const cluster = new Cluster({ voters: 3 });
    const leader = await cluster.elect();
    await cluster.commit('a', [1, 2, 3]);
    cluster.stalled.add(leader.id);
    leader.propose('committed by the others');
    await cluster.settle();
    // Committed by two of three, but not on the leader's own disk, so not applied.
    expect(leader.status.commit).toBeGreaterThan(leader.status.applied);
    const answer = read(leader);
    await cluster.settle();
    expect(answer.answered).toBe(false);
    cluster.stalled.clear();
    await cluster.settle();
    expect(answer.index).toBe(leader.status.commit);
  });
});
