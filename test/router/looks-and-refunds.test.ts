/** Tests routing of peeks and refunds. Peeks may be sent to any node again, as they propose nothing. */
import { describe, expect, it } from 'vitest';
import type { LookAnswer } from '../../src/api/look.ts';
import type { RefundAnswer } from '../../src/api/refund.ts';
import type { Answer } from '../../src/api/user-request.ts';
import { standingOf } from '../api/decision-of.ts';
import { GRANT, notLeader, RouterBench, unavailable } from './fixtures.ts';

const STANDING: Answer & LookAnswer = {
  kind: 'standing',
  standing: { limits: [standingOf()], decided: { term: 1, index: 9, timeMillis: 5 }, rulesVersion: 7 },
};

function look(bench: RouterBench, userId: string): LookAnswer[] {
  const told: LookAnswer[] = [];
  bench.router.ask({ ask: 'look', userId }, (answer) => told.push(answer));
  return told;
}

describe('a look', () => {
  it('is sent to the leader here or elsewhere, and its answer comes back', () => {
    const bench = new RouterBench();
    bench.leads(0, 1);
    bench.leads(1, 3);
    bench.partition(0).reply = () => STANDING;
    bench.reply = () => STANDING;
    expect([look(bench, '0:ada'), look(bench, '1:bob')]).toEqual([[STANDING], [STANDING]]);
    expect(bench.forwarded).toMatchObject([{ to: 3, request: { ask: 'look', userId: '1:bob' } }]);
  });

  it('that was lost with its node is asked again, though it has no id', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    bench.forwarded[0]?.answer(unavailable('unknown_outcome', true));
    bench.leads(0, 3);
    bench.tick();
    bench.forwarded.at(-1)?.answer(STANDING);
    expect([bench.forwarded.length > 1, told]).toEqual([true, [STANDING]]);
  });

  it('is asked again when its node falls silent, and the first answer counts', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    bench.suspect(2);
    bench.leads(0, 3);
    expect(bench.targets).toEqual([2, 3]);
    bench.forwarded[0]?.answer(STANDING);
    expect(told).toEqual([STANDING]);
  });

  it('of an unknown rule is refused, whatever happened to other attempts', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    const invalid: Answer & LookAnswer = { kind: 'invalid', field: 'rule', message: 'none' };
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(invalid);
    expect(told).toEqual([invalid]);
  });

  it('without an answer is refused at the deadline, and is in no log', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const asked = look(bench, '0:ada');
    bench.connected.clear();
    const waiting = look(bench, '1:ada');
    bench.runOut();
    expect(asked).toEqual([unavailable('deadline', false)]);
    expect(waiting).toEqual([unavailable('no_leader', false)]);
  });

  it('that was lost and finds no other leader is in no log', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    bench.forwarded[0]?.answer(unavailable('unknown_outcome', true));
    bench.runOut();
    expect(told).toMatchObject([{ kind: 'unavailable', proposed: false }]);
  });

  it('is not answered by a decision, nor a request for a grant by a status', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    bench.forwarded[0]?.answer(GRANT);
    expect(told).toEqual([unavailable('unknown_outcome', false)]);
    const granted = bench.allow('0:bob');
    bench.forwarded[1]?.answer(STANDING);
    expect(granted.answers).toEqual([unavailable('unknown_outcome', true)]);
  });

  it('is sent on by a node that learns who leads', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = look(bench, '0:ada');
    bench.forwarded[0]?.answer(notLeader(3));
    bench.forwarded[1]?.answer(STANDING);
    expect([told, bench.targets]).toEqual([[STANDING], [2, 3]]);
  });
});

describe('a refund', () => {
  const REFUND = { ask: 'refund', userId: '0:ada', requestId: 'r1' } as const;
  const decided = { term: 1, index: 9, timeMillis: 5 };

  function refundAnswer(refunded: boolean): Answer & RefundAnswer {
    return { kind: 'refund', refund: { refunded, ruleId: '', cost: 0, decided, rulesVersion: 7 } };
  }

  function refund(bench: RouterBench): RefundAnswer[] {
    const told: RefundAnswer[] = [];
    bench.router.ask(REFUND, (answer) => told.push(answer));
    return told;
  }

  it('is asked again when its node falls silent, as its id makes it the same', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = refund(bench);
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(refundAnswer(true));
    expect([bench.targets, told]).toEqual([[2, 3], [refundAnswer(true)]]);
  });

  it('of nothing is not the answer while an earlier attempt may still find the grant', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = refund(bench);
    bench.suspect(2);
    bench.leads(0, 3);
    bench.forwarded[1]?.answer(refundAnswer(false));
    expect(told).toEqual([unavailable('unknown_outcome', true)]);
  });

  it('is not answered by a decision', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const told = refund(bench);
    bench.forwarded[0]?.answer(GRANT);
    expect(told).toEqual([unavailable('unknown_outcome', true)]);
  });
});
