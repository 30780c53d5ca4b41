/** Replication. Numbers are those of the scenario catalogue. */
import { describe, expect, it } from 'vitest';
import { Progress } from '../../raft/progress.ts';
import type { Append, AppendResponse, Message } from '../../raft/types.ts';
import { termsOf } from './log-view.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

function isAppend(message: Message): message is Append {
  return message.type === 'append';
}

function isAppendResponse(message: Message): message is AppendResponse {
  return message.type === 'appendResponse';
}

function appendOf(
  term: number,
  prev: readonly [number, number],
  terms: readonly number[],
  commit = 0,
): Append {
  const [prevIndex, prevTerm] = prev;
  const entries = terms.map((entryTerm, i) => ({
    index: prevIndex + 1 + i,
    term: entryTerm,
    timeMillis: (prevIndex + 1 + i) * 10,
    kind: 'command' as const,
    data: new Uint8Array(1),
  }));
  return { type: 'append', from: 2, to: 1, term, prevIndex, prevTerm, entries, commit, timeMillis: 1_000 };
}

/** 40 entries of each term. */
function blocks(...terms: number[]): number[] {
  return terms.flatMap((term) => Array<number>(40).fill(term));
}

describe('replication', () => {
  it('25: a leader sends heartbeats every interval', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.sent.length = 0;
    network.tick(1, 5 * heartbeatTicks);
    const beats = network.sent.filter(({ type }) => type === 'heartbeat');
    expect(beats.map(({ to }) => to)).toEqual([2, 3, 2, 3, 2, 3, 2, 3, 2, 3]);
  });

  it('26: an append goes out with the position before it', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.sent.length = 0;
    network.propose(1, 'b');
    const appends = network.sent.filter(isAppend);
    expect(appends).toMatchObject([
      { to: 2, term: 1, prevIndex: 2, prevTerm: 1, entries: [{ index: 3, term: 1 }] },
      { to: 3, term: 1, prevIndex: 2, prevTerm: 1, entries: [{ index: 3, term: 1 }] },
    ]);
  });

  it.each([
    { prev: [3, 1], hint: [2, 1], why: 'past the end' },
    { prev: [2, 2], hint: [2, 1], why: 'of another term' },
  ] as const)('27: an append after a position $why is refused with a hint', ({ prev, hint }) => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]) });
    network.act(1, (core) => core.step(appendOf(3, prev, [3])));
    expect(network.sent.filter(isAppendResponse)).toMatchObject([
      { rejected: true, index: prev[0], hintIndex: hint[0], hintTerm: hint[1] },
    ]);
    expect(termsOf(network.core(1))).toEqual([1, 1]);
  });

  it.each([
    { own: [1, 1, 1], prev: [1, 1], send: [1, 1], result: [1, 1, 1], why: 'a repeat' },
    { own: [1, 1, 1], prev: [1, 1], send: [1], result: [1, 1, 1], why: 'an old, short one' },
    { own: [1, 1, 1], prev: [0, 0], send: [], result: [1, 1, 1], why: 'an empty one' },
    { own: [1, 1, 1], prev: [1, 1], send: [2], result: [1, 2], why: 'a conflict' },
    { own: [1, 1, 1], prev: [1, 1], send: [1, 2, 2], result: [1, 1, 2, 2], why: 'a conflict further on' },
    { own: [1, 1, 1], prev: [3, 1], send: [2, 2], result: [1, 1, 1, 2, 2], why: 'the next entries' },
  ] as const)('28, 30: after $why the log is $result', ({ own, prev, send, result }) => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog(own)]]) });
    network.act(1, (core) => core.step(appendOf(2, prev, send)));
    expect(termsOf(network.core(1))).toEqual(result);
    expect(network.sent.filter(isAppendResponse)).toMatchObject([
      { rejected: false, index: prev[0] + send.length },
    ]);
    expect(network.node(1).stored?.entries.map(({ term }) => term)).toEqual(result);
  });

  // The paper's figure 7: a leader of term 8, and what followers may look like then.
  const LEADER = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
  it.each([
    ['a: an entry is missing', [1, 1, 1, 4, 4, 5, 5, 6, 6]],
    ['b: most are missing', [1, 1, 1, 4]],
    ['c: one too many', [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6]],
    ['d: two of a later term too many', [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7]],
    ['e: missing and too many', [1, 1, 1, 4, 4, 4, 4]],
    ['f: a leader of two terms that never committed', [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3]],
    ['an empty log', []],
  ])("29: figure 7 (%s): the follower ends with the leader's log", (_name, follower) => {
    const stored = new Map([
      [1, storedLog(LEADER, { term: 7 })],
      [2, storedLog(follower, { term: 7 })],
      // Someone else who lets node 1 win, and has less than it.
      [3, storedLog([1], { term: 7 })],
    ]);
    const network = new Network({ nodes: 3, stored });
    network.cut(1, 2);
    network.elect(1);
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 8 });
    network.heal();
    network.tickAll(4 * heartbeatTicks);
    expect(termsOf(network.core(2))).toEqual([...LEADER, 8]);
    expect(network.core(2).applied).toBe(11);
  });

  it('31: a late refusal cannot move next to or below match', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    for (const text of ['a', 'b', 'c']) network.commit(1, text);
    const late = { type: 'appendResponse', from: 2, to: 1, term: 1, rejected: true } as const;
    for (let index = 0; index <= 5; index += 1) {
      network.act(1, (core) => core.step({ ...late, index, hintIndex: 0, hintTerm: 0 }));
      network.settle();
    }
    expect(network.core(1).status().match.get(2)).toBe(4);
    network.commit(1, 'd');
    expect(network.core(1).status().match.get(2)).toBe(5);
  });

  it('31: progress keeps match below next, whatever it is told', () => {
    const progress = new Progress({ next: 10, since: 1, limits: { messagesMax: 4, bytesMax: 1_000 } });
    expect(progress.maybeDecreaseTo(3, 2)).toBe(false);
    expect(progress.maybeDecreaseTo(9, 4)).toBe(true);
    expect(progress.next).toBe(5);
    progress.maybeUpdate(7);
    progress.becomeReplicate();
    expect(progress.maybeDecreaseTo(7, 0)).toBe(false);
    expect(progress.maybeDecreaseTo(12, 0)).toBe(true);
    expect([progress.match, progress.next]).toEqual([7, 8]);
    progress.becomeProbe();
    expect(progress.maybeDecreaseTo(7, 0)).toBe(true);
    expect([progress.match, progress.next]).toEqual([7, 8]);
  });

  it.each([1, -1])('32: a conflicting term is skipped in one round trip (%d)', (direction) => {
    const mine = blocks(1, 3, 5, 7);
    const theirs = blocks(1, 2, 4, 6, 6);
    const stored = new Map([
      [1, storedLog(direction === 1 ? mine : [...theirs, 8], { term: 8 })],
      [2, storedLog(direction === 1 ? theirs : mine, { term: 8 })],
      [3, storedLog([1], { term: 8 })],
    ]);
    const network = new Network({ nodes: 3, stored });
    network.elect(1);
    network.tickAll(4 * heartbeatTicks);
    expect(termsOf(network.core(2))).toEqual(termsOf(network.core(1)));
    const refusals = network.sent.filter((m) => m.from === 2 && isAppendResponse(m) && m.rejected);
    expect(refusals.length).toBeLessThanOrEqual(5);
  });

  it('42: a deposed leader with 1,500 entries of its own catches up within a few heartbeats', () => {
    const network = new Network({ nodes: 3, raft: { uncommittedBytesMax: 1 << 20 } });
    network.elect(1);
    network.commit(1, 'shared');
    network.isolate(1);
    for (let i = 0; i < 1_500; i += 1) network.propose(1, `lost ${i}`);
    network.elect(2);
    for (let i = 0; i < 100; i += 1) network.commit(2, `kept ${i}`);
    network.sent.length = 0;
    network.heal();
    network.tickAll(3 * heartbeatTicks);
    expect(network.node(1).machine).toEqual(network.node(2).machine);
    expect(network.sent.filter((m) => isAppendResponse(m) && m.rejected).length).toBeLessThanOrEqual(4);
  });

  it('33: appends of a deposed leader are refused, and tell it so', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.isolate(1);
    network.elect(2);
    network.propose(1, 'too late');
    const { sent } = network;
    sent.length = 0;
    network.heal();
    network.tick(1, heartbeatTicks);
    network.settle();
    expect(network.status(1)).toMatchObject({ role: 'follower', term: 2 });
    expect(termsOf(network.core(3))).toEqual([1, 2]);
  });

  it('an old, short append that comes after newer ones takes nothing away', () => {
    const network = new Network({ nodes: 3, autoSync: true });
    network.elect(1);
    network.hold((message) => message.type === 'append' && message.to === 2);
    for (const text of ['a', 'b', 'c']) network.propose(1, text);
    network.settle();
    // The newest first, the oldest last, and all of them twice.
    const appends = [...network.held, ...network.held];
    network.release();
    network.queue.length = 0;
    for (const envelope of appends.reverse()) network.deliver(envelope);
    network.tickAll(2 * heartbeatTicks);
    for (const envelope of appends) network.deliver(envelope);
    expect(termsOf(network.core(2))).toEqual([1, 1, 1, 1]);
    expect(network.core(2).applied).toBe(4);
  });

  it('34: nothing commits without a quorum, and everything once it is back', () => {
    const network = new Network({ nodes: 5 });
    network.elect(1);
    network.partition([1, 2], [3, 4, 5]);
    network.propose(1, 'waits');
    network.settle();
    expect(network.core(1).status()).toMatchObject({ commit: 1, lastIndex: 2 });
    network.heal();
    network.tickAll(heartbeatTicks);
    expect(network.core(1).status().commit).toBe(2);
  });

  it('37, 39: appends that were lost are found out by the next heartbeat, while nothing else happens', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.cut(1, 2);
    for (let i = 0; i < 5; i += 1) network.commit(1, `p${i}`);
    network.act(1, (core) => core.peerUnreachable(2));
    network.heal();
    network.tickAll(3 * heartbeatTicks);
    expect(network.node(2).machine).toEqual(network.node(1).machine);
  });

  it('39: a peer that was out of reach for a moment counts as caught up again, though nothing is proposed', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.act(1, (core) => core.peerUnreachable(2));
    expect(network.core(1).isReadyToLead(2, 0)).toBe(false);
    network.tickAll(2 * heartbeatTicks);
    expect(network.core(1).isReadyToLead(2, 0)).toBe(true);
  });

  it('40: a follower learns of a commit by the next heartbeat at the latest', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.commit(1, 'a');
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) expect(node.core.applied).toBe(2);
  });

  it('41: a peer that is gone costs one append, not one per proposal', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.crash(3);
    network.act(1, (core) => core.peerUnreachable(3));
    network.sent.length = 0;
    for (let i = 0; i < 100; i += 1) network.commit(1, `p${i}`);
    expect(network.sent.filter((m) => isAppend(m) && m.to === 3)).toHaveLength(1);
  });

  it('78, 79: a full window stops appends, and heartbeats get it going after a loss', () => {
    const network = new Network({ nodes: 3, raft: { inflight: { messagesMax: 3, bytesMax: 1 << 20 } } });
    network.elect(1);
    network.cutOneWay(1, 2);
    network.sent.length = 0;
    for (let i = 0; i < 10; i += 1) network.commit(1, `p${i}`);
    network.heal();
    network.sent.length = 0;
    network.propose(1, 'blocked');
    expect(network.sent.filter((m) => isAppend(m) && m.to === 2)).toEqual([]);
    network.tickAll(10 * heartbeatTicks);
    expect(network.node(2).machine).toEqual(network.node(1).machine);
  });

  it('38, 80: where a peer is unknown one append goes at a time; once it is known, they follow each other', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.act(1, (core) => core.peerUnreachable(2));
    network.cutOneWay(2, 1);
    network.sent.length = 0;
    const sentTo = (to: number): Append[] => network.sent.filter(isAppend).filter((m) => m.to === to);
    for (let i = 0; i < 4; i += 1) network.propose(1, `p${i}`);
    // Nothing has been answered yet.
    expect(sentTo(2)).toMatchObject([{ prevIndex: 1, entries: [{ index: 2 }] }]);
    expect(sentTo(3).map(({ prevIndex }) => prevIndex)).toEqual([1, 2, 3, 4]);
    // Silence changes nothing; the answer to a heartbeat lets one more go, with all there is.
    network.settle();
    network.tick(1, heartbeatTicks - 1);
    expect(sentTo(2)).toHaveLength(1);
    network.heal();
    network.tickAll(heartbeatTicks);
    expect(sentTo(2)[1]).toMatchObject({ prevIndex: 1 });
    expect(sentTo(2)[1]?.entries).toHaveLength(4);
    network.sent.length = 0;
    for (let i = 0; i < 4; i += 1) network.propose(1, `q${i}`);
    expect(sentTo(2).map(({ prevIndex }) => prevIndex)).toEqual([5, 6, 7, 8]);
  });

  it('81: the window is bounded by bytes as well, and an answer frees all that came before it', () => {
    const progress = new Progress({ next: 1, since: 1, limits: { messagesMax: 100, bytesMax: 100 } });
    progress.becomeReplicate();
    progress.sent(1, 60);
    expect(progress.isPaused()).toBe(false);
    progress.sent(1, 60);
    expect(progress.isPaused()).toBe(true);
    progress.freeInflight(1);
    expect(progress.isPaused()).toBe(false);
    progress.sent(2, 90);
    progress.freeInflight(4);
    expect(progress.inflightCount).toBe(0);
  });

  it('82: a leader that cannot commit refuses proposals beyond its bound, but takes any one when idle', () => {
    const bytes = 100;
    const network = new Network({ nodes: 3, raft: { uncommittedBytesMax: 5 * (bytes + 32) } });
    network.elect(1);
    network.isolate(1);
    let accepted = 0;
    for (let i = 0; i < 50; i += 1) if (network.propose(1, 'x'.repeat(bytes)) !== undefined) accepted += 1;
    expect(accepted).toBe(5);
    network.heal();
    network.tickAll(heartbeatTicks);
    expect(network.core(1).status().commit).toBe(6);
    // Larger than the bound, but nothing else waits.
    expect(network.propose(1, 'x'.repeat(10_000))).toBeDefined();
  });

  it('82: the count starts anew with each term', () => {
    const network = new Network({ nodes: 3, raft: { uncommittedBytesMax: 300 } });
    for (let round = 0; round < 5; round += 1) {
      const leader = 1 + (round % 3);
      network.elect(leader);
      network.isolate(leader);
      let accepted = 0;
      while (accepted < 10 && network.propose(leader, 'x'.repeat(50)) !== undefined) accepted += 1;
      expect(accepted).toBeGreaterThan(0);
      expect(accepted).toBeLessThan(5);
      network.elect(1 + ((round + 1) % 3));
      network.heal();
      network.tickAll(2 * heartbeatTicks);
    }
    network.tickAll(4 * electionTicks);
    const { leader } = network;
    expect(network.propose(leader?.id ?? 0, 'x'.repeat(50))).toBeDefined();
  });

  it('43: an append message carries at most its bound of bytes, and at least one entry', () => {
    const network = new Network({ nodes: 3, raft: { appendBytesMax: 200 } });
    network.elect(1);
    network.isolate(3);
    for (let i = 0; i < 20; i += 1) network.commit(1, 'x'.repeat(i === 10 ? 500 : 30));
    network.heal();
    network.sent.length = 0;
    network.tickAll(6 * heartbeatTicks);
    expect(network.node(3).machine).toEqual(network.node(1).machine);
    for (const message of network.sent.filter(isAppend)) {
      const bytes = message.entries.reduce((sum, { data }) => sum + data.length + 32, 0);
      expect(message.entries.length === 1 || bytes <= 200).toBe(true);
    }
  });
});
