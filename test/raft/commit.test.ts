/**
 * The commit rule, including figure 8 of the Raft paper. The numbers are those of the scenarios in
 * test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { CoreState } from '../../raft/core-state.ts';
import { advanceCommit, appendEntry } from '../../raft/leader.ts';
import { RaftLog } from '../../raft/log.ts';
import { quorumIndex, quorumSize, voteResult } from '../../raft/quorum.ts';
import { termsOf } from './log-view.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';
import { seeded } from './seeded.ts';

const { heartbeatTicks } = TEST_OPTIONS;

/** The paper's figure 8: (a) node 1 led term 2 and reached node 2 only; (b) node 5 led term 3 alone. */
const FIGURE_8 = new Map([
  [1, storedLog([1, 2], { term: 3 })],
  [2, storedLog([1, 2], { term: 3 })],
  [3, storedLog([1], { term: 3 })],
  [4, storedLog([1], { term: 3 })],
  [5, storedLog([1, 3], { term: 3 })],
]);

describe('commit', () => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
  ])('45: of %d nodes, %d disks commit an entry', (nodes, needed) => {
    for (let acknowledging = 0; acknowledging < nodes; acknowledging += 1) {
      const network = new Network({ nodes });
      network.elect(1);
      network.settle();
      network.hold((message) => message.type === 'appendResponse' && message.from > 1 + acknowledging);
      const entry = network.propose(1, 'a');
      network.settle();
      const isCommitted = network.core(1).status().commit >= (entry?.index ?? 0);
      expect(isCommitted).toBe(1 + acknowledging >= needed);
    }
  });

  // The number of entries that each voter has on disk, the leader first, and the number of entries of earlier terms before its own.
  it.each([
    { match: [1], before: 0, commit: 1 },
    { match: [1], before: 1, commit: 0 },
    { match: [2], before: 1, commit: 2 },
    { match: [2, 1], before: 0, commit: 1 },
    { match: [2, 0], before: 0, commit: 0 },
    { match: [2, 1], before: 1, commit: 0 },
    { match: [3, 3], before: 1, commit: 3 },
    { match: [2, 1, 1], before: 0, commit: 1 },
    { match: [2, 2, 0], before: 0, commit: 2 },
    { match: [0, 2, 2], before: 0, commit: 2 },
    { match: [3, 1, 1], before: 1, commit: 0 },
    { match: [3, 2, 1], before: 1, commit: 2 },
    { match: [2, 2, 1, 1], before: 0, commit: 1 },
    { match: [2, 2, 2, 0], before: 0, commit: 2 },
    { match: [3, 3, 1, 1], before: 1, commit: 0 },
    { match: [2, 2, 1, 1, 0], before: 0, commit: 1 },
    { match: [3, 2, 2, 0, 0], before: 1, commit: 2 },
    { match: [3, 3, 1, 1, 1], before: 1, commit: 0 },
  ])('50: disks at $match, after $before entries of earlier terms, commit $commit', (row) => {
    const voters = row.match.map((_, i) => i + 1);
    const { entries } = storedLog(Array<number>(row.before).fill(1));
    const state = new CoreState({
      id: 1,
      voters,
      hardState: { term: 1, vote: 0, commit: 0 },
      removedAt: 0,
      log: new RaftLog({ index: 0, term: 0, timeMillis: 0 }, entries, 0, 0),
      clock: { nowMillis: () => 1_000, anchor: () => {} },
      random: () => 0,
      options: TEST_OPTIONS,
      isPreferred: false,
    });
    state.becomeCandidate();
    const leadership = state.becomeLeader();
    for (let i = 0; i < 2; i += 1) appendEntry(state, leadership, 'command', new Uint8Array(1));
    for (const [i, match] of row.match.entries()) {
      const progress = leadership.progress.get(i + 1);
      if (progress !== undefined) progress.match = match;
    }
    advanceCommit(state, leadership);
    expect(state.log.committed).toBe(row.commit);
    // Asking again moves nothing, least of all back.
    advanceCommit(state, leadership);
    expect(state.log.committed).toBe(row.commit);
  });

  it('46: committing an entry commits all before it, those of earlier leaders included', () => {
    const stored = new Map([1, 2, 3].map((id) => [id, storedLog([1, 1, 2, 3])] as const));
    const network = new Network({ nodes: 3, stored });
    network.elect(2);
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) {
      expect(node.core.status()).toMatchObject({ commit: 5, applied: 5 });
      expect(node.applied.map(({ index }) => index)).toEqual([1, 2, 3, 4, 5]);
    }
  });

  it('47: entries of an earlier term are not committed by counting copies', () => {
    const stored = new Map([
      [1, storedLog([1, 2], { term: 3 })],
      [2, storedLog([1, 2], { term: 3 })],
      [3, storedLog([1], { term: 3 })],
    ]);
    const network = new Network({ nodes: 3, stored });
    // The no-op of the new term reaches no node, while everything before it is on all disks.
    network.hold(
      (message) => message.type === 'append' && message.entries.some(({ kind }) => kind === 'noop'),
    );
    network.elect(1);
    const empty = {
      type: 'append',
      from: 1,
      to: 2,
      term: 4,
      prevIndex: 2,
      prevTerm: 2,
      entries: [],
    } as const;
    network.act(2, (core) => core.step({ ...empty, commit: 0, timeMillis: 0 }));
    network.tickAll(4 * heartbeatTicks);
    const { match, ...status } = network.status(1);
    expect(status).toMatchObject({ role: 'leader', term: 4, commit: 0 });
    expect(match.get(2)).toBe(2);
    network.release();
    network.tickAll(2 * heartbeatTicks);
    expect(network.core(1).status().commit).toBe(3);
  });

  it('47: figure 8: an entry on a majority of disks can still be overwritten, so it was not committed', () => {
    const network = new Network({ nodes: 5, stored: FIGURE_8 });
    network.isolate(5);
    // (c) node 1 leads term 4; the entry of term 2 reaches node 3, but its no-op reaches no node.
    network.hold((message) => message.type === 'append' && message.entries.some(({ term }) => term === 4));
    network.elect(1);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 4 });
    expect(termsOf(network.core(1))).toEqual([1, 2, 4]);
    // Only the part of the appends before the no-op arrives, at nodes 2 and 3.
    const old = { type: 'append', from: 1, term: 4, commit: 0, timeMillis: 0 } as const;
    const data = new TextEncoder().encode('2.2');
    const second = { index: 2, term: 2, timeMillis: 20, kind: 'command', data } as const;
    network.act(2, (core) => core.step({ ...old, to: 2, prevIndex: 2, prevTerm: 2, entries: [] }));
    network.act(3, (core) => core.step({ ...old, to: 3, prevIndex: 1, prevTerm: 1, entries: [second] }));
    network.settle();
    const { match, commit } = network.core(1).status();
    expect([match.get(2), match.get(3)]).toEqual([2, 2]);
    expect(commit).toBe(0);
    // (d) node 1 dies; node 5 leads term 5 with votes of 3 and 4 and overwrites the entry of term 2.
    network.crash(1);
    network.held.length = 0;
    network.release();
    network.heal();
    network.partition([3, 4, 5], [1, 2]);
    network.elect(5);
    network.elect(5);
    expect(network.core(5).role).toBe('leader');
    network.tickAll(2 * heartbeatTicks);
    const winner = termsOf(network.core(5));
    expect(winner.slice(0, 2)).toEqual([1, 3]);
    expect(termsOf(network.core(3))).toEqual(winner);
    network.heal();
    network.restart(1);
    network.tickAll(4 * heartbeatTicks);
    for (const node of network.nodes) expect(node.machine).toEqual(network.node(5).machine);
  });

  it('47: figure 8 (e): once an entry of its own term is on a majority, no node without it can be elected', () => {
    const network = new Network({ nodes: 5, stored: FIGURE_8 });
    network.partition([1, 2, 3], [4, 5]);
    network.elect(1);
    network.tickAll(heartbeatTicks);
    expect(network.core(1).status().commit).toBe(3);
    network.crash(1);
    network.heal();
    network.elect(5);
    network.elect(5);
    expect(network.core(5).role).not.toBe('leader');
    network.elect(3);
    network.elect(3);
    network.tickAll(2 * heartbeatTicks);
    expect(network.core(3).role).toBe('leader');
    expect(termsOf(network.core(5)).slice(0, 3)).toEqual([1, 2, 4]);
  });

  it("48: a new leader commits its predecessor's entries as soon as its no-op is on a majority, without a proposal", () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.hold((message) => message.type === 'appendResponse');
    network.propose(1, 'inherited');
    network.settle();
    expect(network.core(1).status().commit).toBe(1);
    network.crash(1);
    network.held.length = 0;
    network.release();
    network.elect(2);
    network.tickAll(heartbeatTicks);
    expect(network.status(2)).toMatchObject({ role: 'leader', term: 2, applied: 3 });
    expect(network.node(3).applied.map(({ kind }) => kind)).toEqual(['noop', 'command', 'noop']);
  });

  it.each([
    { commit: 3, terms: [1, 1], result: 2, why: 'not past what this append covers' },
    { commit: 1, terms: [1, 1], result: 1, why: 'not past what the leader committed' },
    { commit: 4, terms: [1, 1, 1, 1], result: 4, why: 'all of it' },
  ])('49: a follower commits the smaller of the two: $why', ({ commit, terms, result }) => {
    // The follower has more entries, which this leader does not mention.
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1, 1, 1])]]) });
    const entries = terms.map((term, i) => ({
      index: i + 1,
      term,
      timeMillis: (i + 1) * 10,
      kind: 'command' as const,
      data: new TextEncoder().encode(`${term}.${i + 1}`),
    }));
    // Checked on the core alone: no leader exists here whose disks could justify the commit.
    const { core } = network.node(1);
    core.step({
      type: 'append',
      from: 2,
      to: 1,
      term: 1,
      prevIndex: 0,
      prevTerm: 0,
      entries,
      commit,
      timeMillis: 50,
    });
    expect(core.status().commit).toBe(result);
  });

  it('36: a heartbeat never commits an entry that the follower is not known to have', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.hold((message) => message.type === 'append' && message.to === 3);
    network.commit(1, 'a');
    network.commit(1, 'b');
    network.sent.length = 0;
    network.tick(1, heartbeatTicks);
    const beats = network.sent.filter(({ type }) => type === 'heartbeat');
    expect(beats).toMatchObject([
      { to: 2, commit: 3 },
      { to: 3, commit: 1 },
    ]);
    network.settle();
    expect(network.core(3).status()).toMatchObject({ commit: 1, lastIndex: 1 });
  });

  it('53: an acknowledgement of a term that is over is not counted', () => {
    const network = new Network({ nodes: 5 });
    network.elect(1);
    network.hold((message) => message.type === 'appendResponse');
    network.propose(1, 'a');
    network.settle();
    const late = network.held.splice(0);
    network.release();
    network.isolate(1);
    network.elect(2);
    network.heal();
    network.tickAll(heartbeatTicks);
    network.isolate(2);
    network.elect(1);
    const { commit } = network.core(1).status();
    network.heal();
    network.hold((message) => message.type === 'appendResponse');
    network.propose(1, 'b');
    network.settle();
    for (const envelope of late) network.deliver(envelope);
    expect(network.core(1).status().commit).toBe(commit);
  });

  it('51: the quorum index is the one a naive count finds', () => {
    const random = seeded(51);
    for (let round = 0; round < 2_000; round += 1) {
      const matches = Array.from({ length: 1 + random(7) }, () => random(12));
      let naive = 0;
      for (let index = 0; index < 12; index += 1) {
        if (matches.filter((match) => match >= index).length * 2 > matches.length) naive = index;
      }
      expect(quorumIndex(matches)).toBe(naive);
      expect(quorumSize(matches.length) * 2).toBeGreaterThan(matches.length);
    }
  });

  it('51: votes are won by a majority of voters, lost once that cannot be, and pending in between', () => {
    const random = seeded(52);
    for (let round = 0; round < 2_000; round += 1) {
      const voters = Array.from({ length: 1 + random(7) }, (_, i) => i + 1);
      const votes = new Map<number, boolean>([[99, true]]);
      for (const voter of voters) {
        const vote = random(3);
        if (vote < 2) votes.set(voter, vote === 1);
      }
      const granted = voters.filter((voter) => votes.get(voter) === true).length;
      const refused = voters.filter((voter) => votes.get(voter) === false).length;
      const expected =
        granted * 2 > voters.length
          ? 'won'
          : (voters.length - refused) * 2 > voters.length
            ? 'pending'
            : 'lost';
      expect(voteResult(voters, votes)).toBe(expected);
    }
  });
});
