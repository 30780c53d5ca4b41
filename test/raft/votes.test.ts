/** Which requests for votes are granted. The numbers are those of the scenarios in test/raft/SCENARIOS.md. */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../raft/types.ts';
import { Network } from './network.ts';
import { TEST_OPTIONS } from './node.ts';
import { storedLog } from './stored-log.ts';

const { electionTicks, heartbeatTicks } = TEST_OPTIONS;

function sentBy(network: Network, from: number, type: Message['type']): Message[] {
  return network.sent.filter((message) => message.from === from && message.type === type);
}

describe('a vote', () => {
  it('6: a node votes once per term, first come, first served, and again for the same candidate', () => {
    const network = new Network({ nodes: 3 });
    const ask = (from: number): void => {
      network.act(1, (core) =>
        core.step({ type: 'vote', from, to: 1, term: 1, lastIndex: 0, lastTerm: 0, isTransfer: false }),
      );
    };
    ask(2);
    ask(3);
    ask(2);
    const answers = sentBy(network, 1, 'voteResponse').map((m) => 'granted' in m && [m.to, m.granted]);
    expect(answers).toEqual([
      [2, true],
      [3, false],
      [2, true],
    ]);
  });

  it.each([
    { own: [1, 1], lastIndex: 2, lastTerm: 1, granted: true, why: 'the same log' },
    { own: [1, 1], lastIndex: 3, lastTerm: 1, granted: true, why: 'a longer log of the same term' },
    { own: [1, 1], lastIndex: 1, lastTerm: 2, granted: true, why: 'a shorter log of a later term' },
    { own: [1, 1], lastIndex: 1, lastTerm: 1, granted: false, why: 'a shorter log' },
    { own: [1, 2], lastIndex: 9, lastTerm: 1, granted: false, why: 'a longer log of an earlier term' },
    { own: [], lastIndex: 0, lastTerm: 0, granted: true, why: 'two empty logs' },
  ])('7: to a candidate with $why the answer is $granted', ({ own, lastIndex, lastTerm, granted }) => {
    for (const type of ['preVote', 'vote'] as const) {
      const network = new Network({ nodes: 3, stored: new Map([[1, storedLog(own)]]) });
      network.act(1, (core) =>
        core.step({ type, from: 2, to: 1, term: 5, lastIndex, lastTerm, isTransfer: false }),
      );
      expect(network.sent).toMatchObject([{ type: `${type}Response`, granted }]);
    }
  });

  it('11: a node in any role votes by its log when asked in a later term', () => {
    for (const role of ['follower', 'preCandidate', 'candidate', 'leader'] as const) {
      for (const isComplete of [true, false]) {
        const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]) });
        if (role === 'leader') network.elect(1);
        network.hold(({ type }) => type === (role === 'candidate' ? 'voteResponse' : 'preVoteResponse'));
        if (role === 'preCandidate' || role === 'candidate') network.act(1, (core) => core.campaign());
        network.settle();
        expect(network.core(1).role).toBe(role);
        const { index, term } = network.core(1).lastPosition;
        const lastIndex = isComplete ? index : index - 1;
        // Asked by a node that its leader chose: the protection of a living leader does not count.
        const request = { type: 'vote', from: 2, to: 1, term: 7, isTransfer: true } as const;
        network.act(1, (core) => core.step({ ...request, lastIndex, lastTerm: term }));
        expect(network.status(1)).toMatchObject({ role: 'follower', term: 7, leader: 0 });
        expect(network.sent.at(-1)).toMatchObject({ type: 'voteResponse', term: 7, granted: isComplete });
        expect(network.node(1).stored?.hardState.vote).toBe(isComplete ? 2 : 0);
      }
    }
  });

  it('12: a candidate whose log is shorter cannot win, and disturbs the group only briefly', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.isolate(3);
    network.commit(1, 'a');
    // It campaigns without asking first, as after a hand-over.
    network.act(3, (core) => core.step({ type: 'timeoutNow', from: 1, to: 3, term: 1 }));
    expect(network.status(3)).toMatchObject({ role: 'candidate', term: 2 });
    network.heal();
    const request = { type: 'vote', from: 3, term: 2, lastIndex: 1, lastTerm: 1, isTransfer: true } as const;
    for (const to of [1, 2]) network.act(to, (core) => core.step({ ...request, to }));
    network.settle();
    expect(network.leader).toBeUndefined();
    network.tickAll(4 * electionTicks);
    expect([1, 2]).toContain(network.leader?.id);
    expect(network.leader?.term).toBeLessThanOrEqual(4);
    network.commit(network.leader?.id ?? 0, 'b');
    network.tickAll(heartbeatTicks);
    for (const node of network.nodes) expect(node.machine).toEqual(network.node(1).machine);
  });

  it('20, 21: a node that refuses a vote does not postpone its own election', () => {
    const network = new Network({ nodes: 3, stored: new Map([[1, storedLog([1, 1])]]) });
    const request = { type: 'preVote', from: 2, to: 1, term: 2, lastIndex: 1, lastTerm: 1 } as const;
    let ticks = 0;
    for (; network.core(1).role === 'follower' && ticks < 100; ticks += 1) {
      network.act(1, (core) => core.step({ ...request, isTransfer: false }));
      network.tick(1);
    }
    expect(network.sent.some((message) => message.type === 'preVoteResponse' && message.granted)).toBe(false);
    expect(ticks).toBeLessThan(2 * electionTicks);
  });

  it('55: a vote depends on the present end of the log, not on entries that were replaced', () => {
    const network = new Network({
      nodes: 3,
      stored: new Map([[1, storedLog([1, 1, 1, 1])]]),
      autoSync: false,
    });
    const entry = { index: 2, term: 2, timeMillis: 20, kind: 'command', data: new Uint8Array(1) } as const;
    const append = { type: 'append', from: 3, to: 1, term: 2, prevIndex: 1, prevTerm: 1 } as const;
    network.act(1, (core) => core.step({ ...append, entries: [entry], commit: 0, timeMillis: 20 }));
    network.node(1).sync();
    const ask = (term: number, lastIndex: number, lastTerm: number): void => {
      const request = { type: 'vote', from: 2, to: 1, term, lastIndex, lastTerm, isTransfer: true } as const;
      network.act(1, (core) => core.step(request));
      network.node(1).sync();
    };
    ask(3, 4, 1);
    expect(network.sent.at(-1)).toMatchObject({ type: 'voteResponse', granted: false });
    ask(4, 2, 2);
    expect(network.sent.at(-1)).toMatchObject({ type: 'voteResponse', granted: true });
  });

  it('a repeated request of the same candidate is granted again, in case the first answer was lost', () => {
    const network = new Network({ nodes: 3 });
    network.hold((message) => message.type === 'voteResponse');
    network.elect(1);
    network.held.length = 0;
    network.release();
    for (const request of sentBy(network, 1, 'vote')) network.act(request.to, (core) => core.step(request));
    network.settle();
    expect(network.status(1)).toMatchObject({ role: 'leader', term: 1 });
  });
});
