/**
 * Pre-votes, and the faster failover when a leader's process is gone. The numbers are those of the scenarios in
 * test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

describe('pre-vote', () => {
  it('85: changes neither term nor vote, on either side', () => {
    const network = new Network({ nodes: 3 });
    network.hold((message) => message.type === 'preVoteResponse');
    for (const id of network.ids) network.act(id, (core) => core.campaign());
    network.settle();
    for (const node of network.nodes) {
      expect(network.status(node.id)).toMatchObject({ role: 'preCandidate', term: 0 });
      expect(node.stored).toBeUndefined();
    }
  });

  it('85: two nodes ask at the same time: one of them leads in the end, and terms stay small', () => {
    for (let seed = 1; seed <= 30; seed += 1) {
      const network = new Network({ nodes: 3, seed });
      network.act(1, (core) => core.campaign());
      network.act(2, (core) => core.campaign());
      network.settle();
      network.tickAll(4 * electionTicks);
      expect(network.leader).toBeDefined();
      expect(network.leader?.term).toBeLessThanOrEqual(2);
    }
  });

  it('86: an isolated node that comes back does not depose the leader', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.isolate(3);
    network.tickAll(20 * electionTicks);
    expect(network.status(3)).toMatchObject({ role: 'preCandidate', term: 1 });
    network.heal();
    network.tickAll(5 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
    expect(network.status(3)).toMatchObject({ role: 'follower', leader: 1 });
  });

  it('87: votes are split, and the group still gets a leader', () => {
    const network = new Network({ nodes: 3 });
    // Both win their pre-vote before either asks for votes.
    network.hold((message) => message.type === 'vote');
    network.isolate(1);
    network.heal();
    network.act(2, (core) => core.campaign());
    network.settle();
    network.act(3, (core) => core.campaign());
    network.settle();
    expect([network.core(2).role, network.core(3).role]).toEqual(['candidate', 'candidate']);
    network.crash(1);
    network.release();
    network.settle();
    expect(network.leader).toBeUndefined();
    network.tickAll(6 * electionTicks);
    expect(network.leader).toBeDefined();
  });

  it('87: a node with a smaller term, but the only complete log, is elected', () => {
    const stored = new Map([
      [1, storedLog([1, 1, 1])],
      [2, storedLog([1], { term: 6 })],
      [3, storedLog([1], { term: 7 })],
    ]);
    const network = new Network({ nodes: 3, stored });
    network.crash(3);
    network.tickAll(10 * electionTicks);
    expect(network.leaderStatus).toMatchObject({ id: 1 });
    expect(network.core(1).term).toBeGreaterThan(6);
  });

  it('88: a leader dies while one follower is a term ahead: pre-vote and check-quorum do not block each other', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const network = new Network({ nodes: 3, seed });
      network.elect(1);
      // Node 2 campaigned for real and lost its leader; node 3 knows nothing of it.
      network.isolate(2);
      network.act(2, (core) => core.step({ type: 'voteResponse', from: 3, to: 2, term: 4, granted: false }));
      network.crash(1);
      network.heal();
      network.tickAll(10 * electionTicks);
      expect(network.leader).toBeDefined();
    }
  });

  it('86: a pre-vote is not granted by a node that hears from its leader', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.sent.length = 0;
    network.act(3, (core) => core.campaign());
    network.settle();
    expect(network.sent.filter(({ type }) => type === 'preVoteResponse')).toEqual([]);
    network.tickAll(heartbeatTicks);
    expect(network.status(3)).toMatchObject({ role: 'follower', leader: 1 });
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });
});

describe('forgetting a leader', () => {
  it('90: gives a failover within a few ticks when the process is gone', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'before');
    network.crash(1);
    network.act(2, (core) => core.forgetLeader(1));
    network.act(3, (core) => core.forgetLeader(1 + heartbeatTicks));
    network.tickAll(1);
    expect(network.leaderStatus).toMatchObject({ id: 2, term: 2 });
    network.commit(2, 'after');
    expect(network.core(3).lastPosition.index).toBe(4);
  });

  it('90: does no harm when the leader lives: its followers do not help to depose it', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.act(2, (core) => core.forgetLeader(1));
    network.tickAll(1);
    expect(network.core(2).role).toBe('preCandidate');
    network.tickAll(heartbeatTicks);
    expect(network.status(2)).toMatchObject({ role: 'follower', leader: 1, term: 1 });
    network.tickAll(5 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });

  it('90: even if all forget a leader that lives, the term rises at most once', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const network = new Network({ nodes: 3, seed });
      network.elect(1);
      network.act(2, (core) => core.forgetLeader(1));
      network.act(3, (core) => core.forgetLeader(1 + heartbeatTicks));
      network.tickAll(10 * electionTicks);
      expect(network.leader?.term).toBeLessThanOrEqual(2);
      network.commit(network.leader?.id ?? 0, 'works');
    }
  });

  it('90: does nothing on a leader or a candidate, or when no leader is known', () => {
    const network = new Network({ nodes: 3 });
    network.act(1, (core) => core.forgetLeader(1));
    network.tick(1, 2);
    expect(network.core(1).role).toBe('follower');
    network.elect(1);
    network.act(1, (core) => core.forgetLeader(1));
    expect(network.status(1)).toMatchObject({ role: 'leader', leader: 1 });
  });

  it('a second vote in the term of a living leader elects no second leader', () => {
    const network = new Network({ nodes: 5 });
    // Node 4 has not voted in term 1, follows its leader, then forgets it.
    network.hold((message) => message.type === 'vote' && message.to >= 4);
    network.elect(1);
    network.tickAll(heartbeatTicks);
    network.act(4, (core) => core.forgetLeader(100));
    network.act(4, (core) =>
      core.step({ type: 'vote', from: 5, to: 4, term: 1, lastIndex: 9, lastTerm: 1, isTransfer: false }),
    );
    network.settle();
    network.tickAll(heartbeatTicks);
    expect(network.leaderStatus).toMatchObject({ id: 1, term: 1 });
    expect(network.status(4)).toMatchObject({ role: 'follower', leader: 1 });
  });
});
