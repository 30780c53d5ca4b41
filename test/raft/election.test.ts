/**
 * Elections: the first leader, and its successors. The numbers are those of the scenarios in test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { termsOf } from './log-view.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

describe('election', () => {
  it('3: a node starts as a follower and waits for at least the election timeout', () => {
    const network = new Network({ nodes: 3 });
    network.tick(1, electionTicks - 1);
    expect(network.core(1).role).toBe('follower');
    expect(network.sent).toEqual([]);
  });

  it('4, 8: after the timeout it asks every other voter, with the end of its log, and votes for itself', () => {
    const stored = new Map([[1, storedLog([1, 1, 2])]]);
    const network = new Network({ nodes: 5, stored });
    network.tick(1, 2 * electionTicks);
    network.settle();
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 3 });
    const requests = network.sent.filter(({ from, type }) => from === 1 && type === 'vote');
    expect(requests.map(({ to }) => to)).toEqual([2, 3, 4, 5]);
    for (const request of requests) expect(request).toMatchObject({ term: 3, lastIndex: 3, lastTerm: 2 });
    expect(network.node(1).stored?.hardState).toMatchObject({ term: 3, vote: 1 });
  });

  it('4: a candidate without answers returns to pre-votes, and its term does not grow', () => {
    const network = new Network({ nodes: 3 });
    network.hold((message) => message.type === 'voteResponse');
    network.tick(1, 2 * electionTicks);
    network.settle();
    expect(network.status(1)).toMatchObject({ role: 'candidate', term: 1 });
    network.isolate(1);
    network.tick(1, 10 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'preCandidate', term: 1 });
  });

  it('two replicas that both believe to be preferred do not split the votes forever', () => {
    const network = new Network({ nodes: 2 });
    for (const { core } of network.nodes) core.prefer(true);
    network.tickAll(30 * electionTicks);
    expect(network.leader).toBeDefined();
  });

  it.each([
    [1, 0],
    [2, 1],
    [3, 1],
    [4, 2],
    [5, 2],
  ])('5: of %d nodes it takes %d votes of others to win', (nodes, needed) => {
    for (let granting = 0; granting < nodes; granting += 1) {
      const network = new Network({ nodes });
      // All others grant pre-votes; only the first few of them grant votes.
      network.hold((message) => message.type === 'vote' && message.to > 1 + granting);
      network.act(1, (core) => core.campaign());
      network.settle();
      expect(network.core(1).role).toBe(granting >= needed ? 'leader' : 'candidate');
    }
  });

  it.each(['append', 'heartbeat'] as const)(
    '9: a candidate that gets a %s of its own term follows',
    (type) => {
      const network = new Network({ nodes: 3 });
      network.hold((message) => message.type === 'voteResponse');
      network.act(1, (core) => core.campaign());
      network.settle();
      expect(network.core(1).role).toBe('candidate');
      const common = { from: 2, to: 1, term: 1, commit: 0, timeMillis: 0 };
      network.act(1, (core) =>
        core.step(
          type === 'append'
            ? { ...common, type, prevIndex: 0, prevTerm: 0, entries: [] }
            : { ...common, type, readRound: 0, match: 0 },
        ),
      );
      expect(network.status(1)).toMatchObject({ role: 'follower', leader: 2, term: 1 });
      // 15: votes that arrive late, its own included, do not make it a second leader.
      network.release();
      network.settle();
      expect(network.core(1).role).toBe('follower');
    },
  );

  it('10: timeouts are spread over [minimum, twice the minimum)', () => {
    const timeouts = new Set<number>();
    for (let seed = 1; seed <= 200; seed += 1) {
      const network = new Network({ nodes: 3, seed });
      let ticks = 0;
      while (network.core(1).role === 'follower') {
        network.tick(1);
        ticks += 1;
      }
      expect(ticks).toBeGreaterThanOrEqual(electionTicks);
      expect(ticks).toBeLessThan(2 * electionTicks);
      timeouts.add(ticks);
    }
    expect(timeouts.size).toBeGreaterThanOrEqual(electionTicks / 2);
  });

  it('1: a node in any role that sees a later term becomes a follower of that term', () => {
    for (const role of ['follower', 'preCandidate', 'candidate', 'leader'] as const) {
      const network = new Network({ nodes: 3 });
      if (role === 'leader') network.elect(1);
      network.hold(
        ({ type }) => type === 'preVoteResponse' || (role === 'candidate' && type === 'voteResponse'),
      );
      if (role === 'candidate') network.hold(({ type }) => type === 'voteResponse');
      if (role === 'preCandidate' || role === 'candidate') network.act(1, (core) => core.campaign());
      network.settle();
      expect(network.core(1).role).toBe(role);
      network.act(1, (core) =>
        core.step({
          type: 'heartbeat',
          from: 2,
          to: 1,
          term: 7,
          commit: 0,
          timeMillis: 0,
          readRound: 0,
          match: 0,
        }),
      );
      expect(network.status(1)).toMatchObject({ role: 'follower', term: 7, leader: 2 });
    }
  });

  it('2: a message of an earlier term changes nothing', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.isolate(1);
    network.elect(2);
    network.heal();
    network.tickAll(heartbeatTicks);
    const before = network.core(3).status();
    for (const message of network.sent.filter(({ to, term }) => to === 3 && term === 1)) {
      network.act(3, (core) => core.step(message));
    }
    expect(network.core(3).status()).toEqual(before);
  });

  it('13: the leader overwrites entries of a later term that were never committed', () => {
    // Nodes 1 and 2 have led terms 2 and 3, and their entries reached no other node.
    const stored = new Map([
      [1, storedLog([1, 2])],
      [2, storedLog([1, 3])],
      [3, storedLog([1], { term: 3, vote: 2 })],
      [4, storedLog([1], { term: 3, vote: 2 })],
      [5, storedLog([1], { term: 3, vote: 1 })],
    ]);
    const network = new Network({ nodes: 5, stored });
    network.isolate(2);
    // The first attempt only shows it the current term.
    network.elect(1);
    network.elect(1);
    expect(network.leader?.status()).toMatchObject({ leader: 1, term: 4 });
    network.heal();
    network.tickAll(2 * heartbeatTicks);
    for (const id of network.ids) expect(termsOf(network.core(id))).toEqual([1, 2, 4]);
  });

  it('14: every node can lead in turn', () => {
    const network = new Network({ nodes: 3 });
    for (const id of [1, 2, 3, 1, 2, 3]) {
      const before = network.leader;
      if (before !== undefined) network.isolate(before.id);
      network.elect(id);
      network.heal();
      network.tickAll(heartbeatTicks);
      expect(network.leader?.id).toBe(id);
      network.commit(id, `of ${id}`);
    }
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) expect(node.machine).toEqual(network.node(1).machine);
  });

  it('16: a leader that is asked to campaign does nothing', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    const before = network.core(1).status();
    network.act(1, (core) => core.campaign());
    expect(network.core(1).status()).toEqual(before);
  });

  it('19: one node has the later term, others the longer logs: a node with a longer log is elected', () => {
    const stored = new Map([
      [1, storedLog([1], { term: 9 })],
      [2, storedLog([1, 1, 1])],
      [3, storedLog([1, 1], { term: 2 })],
    ]);
    const network = new Network({ nodes: 3, stored });
    network.tickAll(10 * electionTicks);
    expect([2, 3]).toContain(network.leader?.id);
    expect(network.leader?.term).toBeGreaterThan(9);
  });

  it('22: a node alone elects itself', () => {
    const network = new Network({ nodes: 1 });
    network.tickAll(2 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1, applied: 1 });
  });

  it('23, 24: a leader that can only send, or only receive, is replaced', () => {
    for (const cannotReceive of [true, false]) {
      const network = new Network({ nodes: 3 });
      network.elect(1);
      for (const other of [2, 3]) network.cutOneWay(cannotReceive ? other : 1, cannotReceive ? 1 : other);
      network.tickAll(5 * electionTicks);
      const leader = network.leader?.id ?? 0;
      expect([2, 3]).toContain(leader);
      network.commit(leader, 'after');
      // And the replaced leader does not disturb the new one, even if the links never heal.
      const { term } = network.core(leader);
      network.tickAll(10 * electionTicks);
      expect(network.status(leader)).toMatchObject({ role: 'leader', term });
    }
  });

  it('96: two of three that cannot reach each other still agree on one leader, and keep it', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const network = new Network({ nodes: 3, seed });
      network.cut(1, 3);
      network.tickAll(10 * electionTicks);
      const { leader } = network;
      expect(leader).toBeDefined();
      const term = leader?.term;
      network.tickAll(20 * electionTicks);
      expect(network.leaderStatus).toMatchObject({ id: leader?.id, term });
      network.commit(leader?.id ?? 0, 'works');
    }
  });
});
