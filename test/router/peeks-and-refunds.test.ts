/** Tests routing of peeks and refunds. Peeks may be sent to any node again, as they propose nothing. */
import { describe, expect, it } from 'vitest';
import type { PeekAnswer } from '../../src/api/peek.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { limitStatusOf } from '../api/decision-of.ts';
import { GRANT, notLeader, RouterBench, unavailable } from './fixtures.ts';

const STATUS: Answer & PeekAnswer = {
  kind: 'keyStatus',
  keyStatus: { limits: [limitStatusOf()], decided: { term: 1, index: 9, timeMillis: 5 }, rulesVersion: 7 },
};

function peek(bench: RouterBench, userId: string): PeekAnswer[] {
  const reported: PeekAnswer[] = [];
  bench.router.ask({ ask: 'peek', userId }, (answer) => reported.push(answer));
  return reported;
}

describe('a peek', () => {
  it('is sent to the leader here or elsewhere, and its answer comes back', () => {
    const bench = new RouterBench();
    bench.leads(0, 1);
    bench.leads(1, 3);
    bench.partition(0).reply = () => STATUS;
    bench.reply = () => STATUS;
    expect([peek(bench, '0:ada'), peek(bench, '1:bob')]).toEqual([[STATUS], [STATUS]]);
    expect(bench.forwarded).toMatchObject([{ to: 3, request: { ask: 'peek', userId: '1:bob' } }]);
  });

  it('that was lost with its node is sent again, although it has no id', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    bench.forwarded[0]?.answer(unavailable('unknown_outcome', true));
    bench.leads(0, 3);
    bench.tick();
    bench.forwarded.at(-1)?.answer(STATUS);
    expect([bench.forwarded.length > 1, reported]).toEqual([true, [STATUS]]);
  });

  it('is sent again when its node falls silent, and the first answer counts', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    bench.suspect(2);
    bench.leads(0, 3);
    expect(bench.targets).toEqual([2, 3]);
    bench.forwarded[0]?.answer(STATUS);
    expect(reported).toEqual([STATUS]);
  });

  it('of an unknown rule is refused, for any outcome of other attempts', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    const invalid: Answer & PeekAnswer = { kind: 'invalid', field: 'rule', message: 'none' };
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(invalid);
    expect(reported).toEqual([invalid]);
  });

  it('without an answer is refused at the deadline as certainly not proposed', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const asked = peek(bench, '0:ada');
    bench.connected.clear();
    const waiting = peek(bench, '1:ada');
    bench.runOut();
    expect(asked).toEqual([unavailable('deadline', false)]);
    expect(waiting).toEqual([unavailable('no_leader', false)]);
  });

  it('that was lost and finds no other leader was certainly not proposed', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    bench.forwarded[0]?.answer(unavailable('unknown_outcome', true));
    bench.runOut();
    expect(reported).toMatchObject([{ kind: 'unavailable', proposed: false }]);
  });

  it('is not answered by a decision, nor a request for a grant by a status', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    bench.forwarded[0]?.answer(GRANT);
    expect(reported).toEqual([unavailable('unknown_outcome', false)]);
    const granted = bench.allow('0:bob');
    bench.forwarded[1]?.answer(STATUS);
    expect(granted.answers).toEqual([unavailable('unknown_outcome', true)]);
  });

  it('is forwarded by a node that learns of the leader', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = peek(bench, '0:ada');
    bench.forwarded[0]?.answer(notLeader(3));
    bench.forwarded[1]?.answer(STATUS);
    expect([reported, bench.targets]).toEqual([[STATUS], [2, 3]]);
  });
});

describe('a refund', () => {
  const REFUND = { ask: 'refund', userId: '0:ada', requestId: 'r1' } as const;
  const decided = { term: 1, index: 9, timeMillis: 5 };

  function refundAnswer(refunded: boolean): Answer & RefundAnswer {
    return { kind: 'refund', refund: { refunded, ruleId: '', cost: 0, decided, rulesVersion: 7 } };
  }

  function refund(bench: RouterBench): RefundAnswer[] {
    const reported: RefundAnswer[] = [];
    bench.router.ask(REFUND, (answer) => reported.push(answer));
    return reported;
  }

  it('is sent again under its id when its node falls silent', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = refund(bench);
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(refundAnswer(true));
    expect([bench.targets, reported]).toEqual([[2, 3], [refundAnswer(true)]]);
  });

  it('that finds no grant is not the answer while an earlier attempt may still find it', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = refund(bench);
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(refundAnswer(false));
    expect(reported).toEqual([unavailable('unknown_outcome', true)]);
  });

  it('is not answered by a decision', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = refund(bench);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported).toEqual([unavailable('unknown_outcome', true)]);
  });
});
