/**
 * Leaders that lose their quorum, and nodes that are stuck in a later term. The numbers are those of the scenarios in
 * test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import type { SnapshotFate } from '../../raft/types.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

/**
 * Node 1 leads in touch with node 3, which needs a snapshot; node 2, which has all entries, hears it no more unless
 * `isWhole`.
 */
function leftBehind(isWhole: boolean): Network {
  const network = new Network({ nodes: 3, snapshotEvery: 5, keepEntries: 2 });
  network.elect(1);
  network.isolate(3);
  for (let i = 0; i < 20; i += 1) network.commit(1, `p${i}`);
  network.heal();
  network.hold(({ type, from }) => type === 'snapshot' && from === 1);
  if (!isWhole) network.cut(1, 2);
  return network;
}

/** Reports this end for the first `times` snapshots that node 1 sends. */
function end(network: Network, times: number, fate: SnapshotFate): void {
  for (let ended = 0, ticks = 0; ended < times && ticks < 20 * electionTicks; ticks += 1) {
    network.tickAll(1);
    for (const { message } of network.held.splice(0)) {
      ended += 1;
      network.act(1, (core) => core.snapshotDone(message.to, fate));
    }
  }
}

describe('a leader whose snapshots a follower refuses', () => {
  it('steps down if it has no quorum without that follower, and lets others campaign first', () => {
    const network = leftBehind(false);
    end(network, 2, 'refused');
    network.tickAll(4 * electionTicks);
    expect(network.status(2)).toMatchObject({ role: 'leader' });
    expect(network.status(1)).toMatchObject({ role: 'follower' });
    network.commit(2, 'on it goes');
    network.tickAll(heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(2).machine);
  });

  it('goes on if it has a quorum without that follower', () => {
    const network = leftBehind(true);
    end(network, 5, 'refused');
    network.tickAll(4 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });

  it('goes on if one was refused, or many broke on their way', () => {
    const network = leftBehind(false);
    end(network, 1, 'refused');
    end(network, 5, 'broken');
    network.tickAll(2 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });
});

describe('check-quorum', () => {
  it('91: a leader that a quorum answers stays', () => {
    const network = new Network({ nodes: 5 });
    network.elect(1);
    network.crash(4);
    network.crash(5);
    network.tickAll(20 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });

  it('91: a leader that no quorum answers steps down within two election timeouts, in its own term', () => {
    const network = new Network({ nodes: 5 });
    network.elect(1);
    network.partition([1, 2], [3, 4, 5]);
    network.tick(1, 2 * electionTicks);
    expect(network.status(1)).toMatchObject({ role: 'follower', term: 1, leader: 0 });
    expect(network.propose(1, 'refused')).toBeUndefined();
  });

  it('91: a leader that steps down sends no more heartbeats', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.cutOneWay(2, 1);
    network.cutOneWay(3, 1);
    network.tick(1, 2 * electionTicks);
    network.sent.length = 0;
    network.tick(1, electionTicks / 2);
    expect(network.sent.filter(({ type }) => type === 'heartbeat')).toEqual([]);
  });

  it('92: a vote is refused in any term while the leader was heard from recently', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.sent.length = 0;
    const vote = {
      type: 'vote',
      from: 3,
      to: 2,
      term: 9,
      lastIndex: 99,
      lastTerm: 8,
      isTransfer: false,
    } as const;
    network.act(2, (core) => core.step(vote));
    expect(network.sent).toEqual([]);
    expect(network.status(2)).toMatchObject({ term: 1, leader: 1 });
    // The leader itself ignores the request too.
    network.act(1, (core) => core.step({ ...vote, to: 1 }));
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
    // Once the leader is silent for the minimum timeout, the vote counts.
    network.tick(2, electionTicks);
    network.act(2, (core) => core.step(vote));
    expect(network.core(2).term).toBe(9);
  });

  it('93: a node stuck in a later term is freed: the leader learns of it and a later term begins', () => {
    const stored = new Map([[3, storedLog([], { term: 12 })]]);
    const network = new Network({ nodes: 3, stored });
    network.isolate(3);
    network.elect(1);
    network.commit(1, 'a');
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
    network.heal();
    network.tickAll(10 * electionTicks);
    const { leader } = network;
    expect(leader?.term).toBeGreaterThan(12);
    network.commit(leader?.id ?? 0, 'b');
    network.tickAll(heartbeatTicks);
    expect(network.status(3)).toMatchObject({ role: 'follower', leader: leader?.id });
    expect(network.node(3).machine).toEqual(network.node(1).machine);
  });

  it('93: a candidate stuck in a later term, for which no node may vote, is freed as well', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.isolate(3);
    for (let round = 0; round < 3; round += 1) {
      network.act(3, (core) => core.campaign());
      network.act(3, (core) =>
        core.step({ type: 'preVoteResponse', from: 2, to: 3, term: core.term + 1, granted: true }),
      );
    }
    expect(network.core(3).term).toBeGreaterThan(1);
    network.commit(1, 'b');
    network.heal();
    network.tickAll(10 * electionTicks);
    expect(network.leader).toBeDefined();
    network.commit(network.leader?.id ?? 0, 'c');
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) expect(node.core.applied).toBe(network.leader?.lastPosition.index);
  });

  it('no quorum, no leader, no growth of terms; and a leader at once when it is back', () => {
    const network = new Network({ nodes: 5 });
    network.elect(1);
    network.partition([1, 2], [3, 4], [5]);
    network.tickAll(30 * electionTicks);
    expect(network.leader).toBeUndefined();
    for (const node of network.nodes) expect(node.core.term).toBe(1);
    network.heal();
    network.tickAll(4 * electionTicks);
    expect(network.leader).toBeDefined();
  });
});

describe('leadership transfer', () => {
  it('97: goes to a node that is up to date at once, in the next term', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    expect(network.act(1, (core) => core.transferLeadership(2))).toBe(true);
    network.settle();
    expect(network.leaderStatus).toMatchObject({ id: 2, term: 2 });
    expect(network.core(1).role).toBe('follower');
    network.commit(2, 'b');
  });

  it('97: to a node that is behind, waits until it has caught up', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.cut(1, 2);
    for (let i = 0; i < 5; i += 1) network.commit(1, `p${i}`);
    network.act(1, (core) => core.transferLeadership(2));
    network.settle();
    expect(network.leader?.id).toBe(1);
    network.heal();
    network.tickAll(2 * heartbeatTicks);
    expect(network.leaderStatus).toMatchObject({ id: 2, term: 2 });
    expect(network.core(2).applied).toBe(7);
  });

  it('98: refuses proposals meanwhile, and is given up after an election timeout', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.isolate(2);
    network.commit(1, 'a');
    network.act(1, (core) => core.transferLeadership(2));
    expect(network.propose(1, 'refused')).toBeUndefined();
    network.tickAll(electionTicks);
    expect(network.propose(1, 'taken')).toBeDefined();
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });

  it('99: the last of two targets counts; nodes that are no voters, and the leader itself, are refused', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.cut(1, 2);
    network.commit(1, 'a');
    network.act(1, (core) => {
      expect(core.transferLeadership(1)).toBe(false);
      expect(core.transferLeadership(9)).toBe(false);
      core.transferLeadership(2);
      core.transferLeadership(3);
    });
    network.settle();
    expect(network.leader?.id).toBe(3);
  });

  it('64, 99: to a node that stops being a voter ends with that', () => {
    for (const kind of ['demote', 'remove'] as const) {
      const network = new Network({ nodes: 3 });
      network.elect(1);
      network.hold(({ type, to }) => type === 'append' && to === 2);
      network.act(1, (core) => {
        expect(typeof core.changeMembership([{ kind, node: 2 }], 0)).toBe('object');
        expect(core.transferLeadership(2)).toBe(true);
        expect(core.changeMembership([{ kind, node: 3 }], 0)).toBe('transferring');
      });
      expect(network.core(1).isTransferring).toBe(true);
      network.settle();
      expect(network.core(1).isTransferring).toBe(false);
      expect(network.propose(1, 'goes on')).toBeDefined();
      network.release();
      network.settle();
      expect(network.leader?.id).toBe(1);
      expect(network.act(1, (core) => core.transferLeadership(2))).toBe(false);
    }
  });

  it('17, 64: a node that is no voter does not campaign, not even when it is asked to', () => {
    for (const kind of ['demote', 'remove'] as const) {
      const network = new Network({ nodes: 3 });
      network.elect(1);
      network.act(1, (core) => core.changeMembership([{ kind, node: 3 }], 0));
      // Node 3 always answers first, so that the last heartbeat to it shows that it was removed.
      for (let next = network.queue.shift(); next !== undefined; next = network.queue.shift()) {
        network.deliver(next);
        network.queue.sort((a, b) => Number(b.message.from === 3) - Number(a.message.from === 3));
      }
      network.tickAll(heartbeatTicks);
      expect(network.core(3).config).toMatchObject({ voters: [1, 2], outgoing: [] });
      network.sent.length = 0;
      network.act(3, (core) => {
        core.step({ type: 'timeoutNow', from: 1, to: 3, term: core.term });
        core.campaign();
      });
      network.isolate(3);
      network.tick(3, 5 * electionTicks);
      expect(network.status(3)).toMatchObject({ role: 'follower', term: 1 });
      // It only refuses the request.
      expect(network.sent.filter(({ from }) => from === 3)).toEqual([
        { type: 'heartbeatResponse', from: 3, to: 1, term: 1, readRound: 0, isReluctant: true },
      ]);
    }
  });

  it('98: a hand-over request that arrives in a later term, or twice, starts no second election', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.act(1, (core) => core.transferLeadership(2));
    const handOver = network.queue.find(({ message }) => message.type === 'timeoutNow');
    network.settle();
    const { term } = network.core(2);
    if (handOver !== undefined) network.deliver(handOver);
    network.settle();
    expect(handOver).toBeDefined();
    expect(network.leaderStatus).toMatchObject({ id: 2, term });
  });
});
