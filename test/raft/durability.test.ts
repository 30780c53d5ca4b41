/** Messages that must wait for the disk. The numbers are those of the scenarios in test/raft/SCENARIOS.md. */
import { describe, expect, it } from 'vitest';
import type { Append, Message } from '../../raft/types.ts';
import { termsOf } from './log-view.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;
const FOLLOWER = { from: 2, to: 1 } as const;

function appendOf(term: number, prevIndex: number, prevTerm: number, terms: readonly number[]): Append {
  const entries = terms.map((entryTerm, i) => ({
    index: prevIndex + 1 + i,
    term: entryTerm,
    timeMillis: (prevIndex + 1 + i) * 10,
    kind: 'command' as const,
    data: new TextEncoder().encode(`${entryTerm}.${prevIndex + 1 + i}`),
  }));
  return { type: 'append', ...FOLLOWER, term, prevIndex, prevTerm, entries, commit: 0, timeMillis: 0 };
}

function vote(from: number, term: number): Message {
  return { type: 'vote', from, to: 1, term, lastIndex: 0, lastTerm: 0, isTransfer: false };
}

/** Disks write only when the test lets them; elects `id` all the same. */
function electSlowly(network: Network, id: number): void {
  for (const node of network.up) node.core.forgetLeader(1_000_000);
  network.act(id, (core) => core.campaign());
  rest(network);
}

function rest(network: Network): void {
  for (let round = 0; round < 100; round += 1) {
    network.settle();
    for (const node of network.up) if (node.isWriting) node.sync();
  }
}

describe('durability', () => {
  it('106: a granted vote leaves only after it is on disk', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(vote(2, 1)));
    expect(network.sent).toEqual([]);
    network.node(1).sync();
    expect(network.sent).toMatchObject([{ type: 'voteResponse', to: 2, granted: true }]);
    expect(network.node(1).stored?.hardState).toMatchObject({ term: 1, vote: 2 });
  });

  it('106: a vote survives a restart', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(vote(2, 1)));
    network.node(1).sync();
    network.crash(1);
    network.restart(1);
    network.act(1, (core) => core.step(vote(3, 1)));
    rest(network);
    const answers = network.sent.filter(({ type }) => type === 'voteResponse');
    expect(answers).toMatchObject([
      { to: 2, granted: true },
      { to: 3, granted: false },
    ]);
  });

  it.each(['lost', 'kept'] as const)(
    '106: a crash while a vote is written (%s) never grants twice',
    (fate) => {
      const network = new Network({ nodes: 3, autoSync: false });
      network.act(1, (core) => core.step(vote(2, 1)));
      network.crash(1, fate);
      network.restart(1);
      network.act(1, (core) => core.step(vote(3, 1)));
      rest(network);
      const granted = network.sent.filter((m) => m.type === 'voteResponse' && m.granted);
      expect(granted.map(({ to }) => to)).toEqual(fate === 'lost' ? [3] : []);
    },
  );

  it('106: votes are asked for only after the own vote, and the log they advertise, are on disk', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.campaign());
    network.settle();
    expect(network.status(1)).toMatchObject({ role: 'candidate', term: 1 });
    expect(network.sent.filter(({ type }) => type === 'vote')).toEqual([]);
    network.node(1).sync();
    expect(network.sent.filter(({ type }) => type === 'vote')).toHaveLength(2);
    expect(network.node(1).stored?.hardState).toMatchObject({ term: 1, vote: 1 });
  });

  it('15: a candidate counts its own vote only when that is on disk', () => {
    const network = new Network({ nodes: 1, autoSync: false });
    network.act(1, (core) => core.campaign());
    expect(network.core(1).role).toBe('candidate');
    network.node(1).sync();
    expect(network.core(1).role).toBe('leader');
  });

  it('a follower acknowledges only after its own disk has the entries', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(appendOf(1, 0, 0, [1, 1])));
    expect(network.sent).toEqual([]);
    network.node(1).sync();
    expect(network.sent).toMatchObject([{ type: 'appendResponse', rejected: false, index: 2 }]);
  });

  it('118: a leader sends its appends while its own disk still writes them, and heartbeats as well', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    electSlowly(network, 1);
    network.sent.length = 0;
    network.propose(1, 'a');
    expect(network.node(1).isWriting).toBe(true);
    expect(network.sent.filter(({ type }) => type === 'append')).toHaveLength(2);
    network.tick(1, heartbeatTicks);
    expect(network.sent.filter(({ type }) => type === 'heartbeat')).toHaveLength(2);
  });

  it("a quorum of followers commits without the leader's disk, but the leader applies only entries on its own disk", () => {
    const network = new Network({ nodes: 3, autoSync: false });
    electSlowly(network, 1);
    const entry = network.propose(1, 'a');
    network.settle();
    for (const id of [2, 3]) network.node(id).sync();
    network.settle();
    expect(network.core(1).status()).toMatchObject({
      commit: entry?.index,
      applied: (entry?.index ?? 0) - 1,
    });
    network.node(1).sync();
    expect(network.core(1).applied).toBe(entry?.index);
  });

  it('118: a leader does not count itself before its own disk has the entry', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    electSlowly(network, 1);
    network.crash(3);
    const entry = network.propose(1, 'a');
    network.settle();
    network.node(2).sync();
    network.settle();
    expect(network.core(1).status().commit).toBe((entry?.index ?? 0) - 1);
    network.node(1).sync();
    expect(network.core(1).status().commit).toBe(entry?.index);
  });

  it('110: a node alone commits and applies only after its own sync', () => {
    const network = new Network({ nodes: 1, autoSync: false });
    electSlowly(network, 1);
    network.propose(1, 'a');
    expect(network.core(1).status()).toMatchObject({ lastIndex: 2, commit: 1, applied: 1 });
    network.crash(1);
    network.restart(1);
    expect(network.core(1).lastPosition.index).toBe(1);
    electSlowly(network, 1);
    network.propose(1, 'b');
    network.node(1).sync();
    expect(network.core(1).status()).toMatchObject({ lastIndex: 3, commit: 3, applied: 3 });
  });

  it('115: a message that arrives during a write is answered only after the next write', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    network.act(1, (core) => core.step(appendOf(1, 0, 0, [1])));
    network.act(1, (core) => core.step(appendOf(1, 1, 1, [1])));
    network.node(1).sync();
    expect(network.sent).toMatchObject([{ type: 'appendResponse', index: 1 }]);
    expect(network.node(1).isWriting).toBe(true);
    network.node(1).sync();
    expect(network.sent).toMatchObject([{ index: 1 }, { index: 2 }]);
  });

  it('116: a late write (A, B, A) marks no entry stable that it does not contain', () => {
    const network = new Network({ nodes: 5, autoSync: false });
    // A: entries 1 and 2 of term 1 are being written.
    network.act(1, (core) => core.step(appendOf(1, 0, 0, [1, 1])));
    // B: while they are, the leader of term 2 replaces the second.
    network.act(1, (core) => core.step({ ...appendOf(2, 1, 1, [2]), from: 3 }));
    network.node(1).sync();
    expect(network.sent.filter(({ term }) => term === 2)).toEqual([]);
    expect(network.node(1).stored?.entries.map(({ term }) => term)).toEqual([1, 1]);
    // A again: the leader of term 3 has the replaced entry, and brings it back during the second write.
    expect(network.node(1).isWriting).toBe(true);
    network.act(1, (core) => core.step({ ...appendOf(3, 1, 1, [1, 3]), from: 4 }));
    network.node(1).sync();
    expect(network.node(1).stored?.entries.map(({ term }) => term)).toEqual([1, 2]);
    // The second entry on disk is B's: the answer of term 3 must still wait.
    expect(network.sent.filter(({ term }) => term === 3)).toEqual([]);
    network.node(1).sync();
    expect(network.node(1).stored?.entries.map(({ term }) => term)).toEqual([1, 1, 3]);
    expect(network.sent.filter(({ term }) => term === 3)).toMatchObject([{ index: 3, rejected: false }]);
  });

  it('105: a restart finds term, vote, log and commit, and applies from the start of the log', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    for (const text of ['a', 'b', 'c']) network.commit(1, text);
    network.tickAll(heartbeatTicks);
    network.commit(1, 'd');
    const before = network.node(2).machine;
    const { term } = network.core(2);
    network.crash(2);
    network.restart(2);
    expect(network.status(2)).toMatchObject({ role: 'follower', term, leader: 0 });
    expect(termsOf(network.core(2))).toEqual([1, 1, 1, 1, 1]);
    network.tickAll(2 * heartbeatTicks);
    expect(network.node(2).machine.index).toBe(5);
    expect(network.node(2).machine.index).toBeGreaterThanOrEqual(before.index);
  });

  it('109: applying again after a crash gives the same state and the same commit', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    for (let i = 0; i < 10; i += 1) network.commit(1, `p${i}`);
    network.tickAll(heartbeatTicks);
    const { machine } = network.node(1);
    for (const id of network.ids) network.crash(id);
    for (const id of network.ids) network.restart(id);
    network.tickAll(6 * electionTicks);
    const { leader } = network;
    expect(
      network
        .node(1)
        .applied.slice(0, 11)
        .map(({ index }) => index),
    ).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(leader?.applied).toBeGreaterThan(machine.index);
    for (const node of network.nodes) expect(node.machine).toEqual(network.node(1).machine);
  });

  it('a crash of all nodes loses nothing that was committed', () => {
    const network = new Network({ nodes: 3, autoSync: false });
    electSlowly(network, 1);
    const entry = network.propose(1, 'a');
    rest(network);
    expect(network.core(1).status().commit).toBe(entry?.index);
    network.propose(1, 'maybe');
    network.settle();
    for (const id of network.ids) network.crash(id, 'lost');
    for (const id of network.ids) network.restart(id);
    electSlowly(network, 3);
    electSlowly(network, 3);
    expect(network.node(3).applied.map(({ index }) => index)).toContain(entry?.index);
  });

  it('a message that promises nothing new is answered at once: a new term alone needs no write', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]), autoSync: false });
    network.act(1, (core) => core.step(appendOf(1, 2, 1, [])));
    expect(network.node(1).isWriting).toBe(false);
    expect(network.sent).toMatchObject([{ type: 'appendResponse', index: 2 }]);
  });
});
