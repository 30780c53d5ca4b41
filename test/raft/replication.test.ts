/**
 * How the logs of followers become equal to the leader's, and which entries commit. The numbers are those of the
 * scenarios in
 * test/raft/SCENARIOS.md.
 */
import { describe, expect, it } from 'vitest';
import { Progress } from '../../raft/progress.ts';
import { termsOf } from './log-view.ts';
import { appendOf, isAppend, isAppendResponse } from './messages.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { heartbeatTicks } = TEST_OPTIONS;

/** 40 entries of each term. */
function blocks(...terms: number[]): number[] {
  return terms.flatMap((term) => Array<number>(40).fill(term));
}

describe('replication', () => {
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
    network.act(1, (core) => core.step(appendOf({ term: 3, prev, terms: [3] })));
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
    network.act(1, (core) => core.step(appendOf({ term: 2, prev, terms: send })));
    expect(termsOf(network.core(1))).toEqual(result);
    expect(network.sent.filter(isAppendResponse)).toMatchObject([
      { rejected: false, index: prev[0] + send.length },
    ]);
    expect(network.node(1).stored?.entries.map(({ term }) => term)).toEqual(result);
  });

  // The paper's figure 7: a leader of term 8, and the logs that followers may have then.
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
      // Another node that lets node 1 win and has a shorter log.
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

  it('31: match stays below next for any sequence of answers', () => {
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

  it.each([1, -1])(
    "32: a conflicting term is skipped in one round trip (sign of the leader's term minus the follower's: %d)",
    (direction) => {
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
    },
  );

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

  it('33: appends of a deposed leader are refused, and the refusal deposes it', () => {
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

  it('an old, short append that comes after newer ones truncates nothing', () => {
    const network = new Network({ nodes: 3, autoSync: true });
    network.elect(1);
    network.hold((message) => message.type === 'append' && message.to === 2);
    for (const text of ['a', 'b', 'c']) network.propose(1, text);
    network.settle();
    // The newest append arrives first, the oldest last, and each of them twice.
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
});
