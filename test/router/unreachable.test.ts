/** Tests nodes that exist and cannot be asked: silent, cut off from this node, or about to leave. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import { decisionOf } from '../api/decision-of.ts';
import { GRANT, notLeader, RouterBench, SILENT_TICKS_MAX, unavailable } from './fixtures.ts';

const DENIAL: Answer = { kind: 'decision', decision: decisionOf({ allowed: false }) };

describe('a node that was asked and does not answer', () => {
  it('is skipped, and its late answer still counts', () => {
    const bench = new RouterBench();
    const reported = bench.allow('5:ada');
    bench.suspect(2);
    expect(bench.targets).toEqual([2]);
    bench.allow('5:bob');
    expect(bench.targets).toEqual([2, 3]);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
  });

  it('does not delay a request that has an id: others are asked under the same id', () => {
    const bench = new RouterBench();
    const reported = bench.allow('5:ada', { requestId: 'r-1' });
    bench.suspect(2);
    expect(bench.targets).toEqual([2, 3]);
    expect(bench.forwarded[1]?.request).toEqual({ userId: '5:ada', requestId: 'r-1' });
    bench.forwarded[1]?.answer(unavailable('overloaded', false));
    // The first one may have proposed it.
    expect(reported.answers).toEqual([unavailable('overloaded', true)]);
  });

  it('cannot deny a request that another node may still grant', () => {
    const bench = new RouterBench();
    const reported = bench.allow('5:ada', { requestId: 'r-1' });
    bench.suspect(2);
    bench.forwarded[0]?.answer(DENIAL);
    expect(reported.answers).toEqual([]);
    bench.forwarded[1]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
  });

  it("may still get the request and grant it: another node's denial waits for its answer", () => {
    const bench = new RouterBench();
    const early = bench.allow('5:ada', { requestId: 'r-1' });
    bench.suspect(2);
    bench.forwarded[1]?.answer(DENIAL);
    expect(early.answers).toEqual([unavailable('unknown_outcome', true)]);
    bench.suspected.delete(2);

    const both = bench.allow('6:bob', { requestId: 'r-2' });
    bench.suspect(2);
    bench.forwarded[2]?.answer(DENIAL);
    bench.forwarded[3]?.answer(DENIAL);
    expect(both.answers).toEqual([DENIAL]);
  });

  it('may still grant a request that another node refuses for another reason than its limit', () => {
    const invalid: Answer = { kind: 'invalid', field: 'timestampMillis', message: 'too far ahead' };
    const conflict: Answer = { kind: 'conflict', field: 'cost', message: 'is that of another request' };
    for (const rejection of [invalid, conflict]) {
      const elsewhere = new RouterBench();
      const early = elsewhere.allow('5:ada', { requestId: 'r-1' });
      elsewhere.suspect(2);
      elsewhere.forwarded[1]?.answer(rejection);
      expect(early.answers).toEqual([unavailable('unknown_outcome', true)]);

      const first = new RouterBench();
      const late = first.allow('5:ada', { requestId: 'r-1' });
      first.suspect(2);
      first.forwarded[0]?.answer(rejection);
      expect(late.answers).toEqual([]);
      first.forwarded[1]?.answer(GRANT);
      expect(late.answers).toEqual([GRANT]);
    }
  });

  it('but answers others is the leader, since any other node says at once that it does not lead', () => {
    const bench = new RouterBench();
    bench.allow('5:ada');
    const waiting = bench.allow('5:bob');
    bench.ticks(SILENT_TICKS_MAX - 1);
    expect(bench.targets).toEqual([2]);
    bench.tick();
    expect(bench.targets).toEqual([2, 2]);
    bench.forwarded[1]?.answer(GRANT);
    expect(waiting.answers).toEqual([GRANT]);
  });

  it('gets the youngest request: the older ones run out of time, one after the other', () => {
    const bench = new RouterBench();
    bench.reply = () => notLeader(0);
    for (const user of ['5:a', '5:b', '5:c']) {
      bench.allow(user);
      bench.nowMillis += 100;
    }
    bench.reply = () => undefined;
    bench.ticks(20);
    expect(bench.forwarded.at(-1)?.request.userId).toBe('5:c');
  });

  it('gets a request with an id, if there is one', () => {
    const bench = new RouterBench();
    bench.reply = () => notLeader(0);
    bench.allow('5:ada');
    bench.reply = () => undefined;
    bench.allow('5:bob', { requestId: 'r-1' });
    bench.tick();
    expect(bench.forwarded.at(-1)?.request.userId).toBe('5:bob');
  });
});

describe('a node cut off one way from its leader', () => {
  it.each([
    ['is not connected to it', (bench: RouterBench) => bench.connected.delete(2)],
    ['gets no answers from it', (bench: RouterBench) => bench.suspect(2)],
  ])('asks others to relay its requests, instead of answering 503: %s', (_how, cut) => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    cut(bench);
    bench.router.peerUnreachable(2);
    const reported = bench.allow('0:ada');
    expect(bench.forwarded).toMatchObject([{ to: 3, relayTo: 2 }]);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
    bench.allow('0:bob');
    expect(bench.forwarded[1]).toMatchObject({ to: 3, relayTo: 2 });
  });

  it('sends to the leader directly again when it can be reached', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.suspect(2);
    bench.reply = () => GRANT;
    bench.allow('0:ada');
    bench.suspected.delete(2);
    bench.tick();
    bench.allow('0:bob');
    expect(bench.forwarded).toMatchObject([
      { to: 3, relayTo: 2 },
      { to: 2, relayTo: 0 },
    ]);
  });

  it('asks all nodes again when that leader says that it no longer leads', () => {
    const bench = new RouterBench();
    bench.leads(5, 2);
    const late = bench.allow('5:late');
    bench.suspect(2);
    bench.reply = () => GRANT;
    bench.allow('5:ada');
    bench.forwarded[0]?.answer(notLeader(0));
    bench.tick();
    bench.allow('5:bob');
    expect(bench.forwarded.at(-1)).toMatchObject({ to: 3, relayTo: 0 });
    expect(late.answers).toEqual([GRANT]);
  });

  it('asks the nodes again that only named the leader', () => {
    const bench = new RouterBench();
    bench.connected.delete(2);
    bench.reply = ({ relayTo }) => (relayTo === 0 ? notLeader(2, 3) : GRANT);
    const reported = bench.allow('5:ada');
    expect(bench.forwarded).toMatchObject([
      { to: 3, relayTo: 0 },
      { to: 3, relayTo: 2 },
    ]);
    expect(reported.answers).toEqual([GRANT]);
  });

  it('whose replica hears of no leader asks all nodes when an election should be over', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.leads(0, 0);
    const reported = bench.allow('0:ada');
    bench.ticks(39);
    expect(bench.forwarded).toEqual([]);
    bench.reply = ({ to }) => (to === 2 ? GRANT : notLeader(2, 1));
    bench.tick();
    expect(reported.answers).toEqual([GRANT]);
  });

  it('follows the news of the next leader', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.suspect(2);
    bench.reply = () => GRANT;
    bench.allow('0:ada');
    bench.leads(0, 3);
    bench.allow('0:bob');
    expect(bench.forwarded).toMatchObject([
      { to: 3, relayTo: 2 },
      { to: 3, relayTo: 0 },
    ]);
  });
});

describe('a node that says it is leaving', () => {
  it('is not asked any more, and its successor is', () => {
    const bench = new RouterBench({ nodes: 4 });
    bench.leads(5, 2);
    bench.allow('5:ada');
    bench.leave(2);
    bench.reply = ({ to }) => (to === 4 ? GRANT : notLeader(4, 9));
    const reported = bench.allow('5:bob');
    expect(bench.targets).toEqual([2, 3, 4]);
    expect(reported.answers).toEqual([GRANT]);
    bench.forwarded[0]?.answer(notLeader(4, 9));
    expect(bench.targets).toEqual([2, 3, 4, 4]);
  });

  it('is not asked through relays any more either', () => {
    const bench = new RouterBench({ nodes: 4 });
    bench.leads(5, 2);
    bench.suspect(2);
    bench.reply = ({ relayTo }) => (relayTo === 2 ? GRANT : undefined);
    bench.allow('5:ada');
    bench.leave(2);
    // The relay through node 3 led to node 2, and no successor is known yet.
    bench.tick();
    expect(bench.lookedUp).not.toContain(0);
    bench.reply = ({ to }) => (to === 4 ? GRANT : notLeader(4, 9));
    const reported = bench.allow('5:bob');
    expect(bench.forwarded.slice(1).map(({ to, relayTo }) => [to, relayTo])).toEqual([[4, 0]]);
    expect(reported.answers).toEqual([GRANT]);
  });

  it('is not used as a relay, and nothing is relayed to it', () => {
    const bench = new RouterBench();
    bench.leads(5, 2);
    bench.leave(2);
    bench.reply = () => notLeader(2, 1);
    bench.allow('5:ada');
    bench.runOut();
    expect(bench.targets).not.toContain(2);
  });
});
