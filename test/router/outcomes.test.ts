/** Tests the answer of a request when a node refuses it, loses it, or does not answer. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import { decisionOf } from '../api/decision-of.ts';
import { DEADLINE_MILLIS, GRANT, notLeader, RouterBench, SELF, unavailable } from './fixtures.ts';

describe('a leader that has the request and does not answer', () => {
  it('delays the request until its deadline, and no longer', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = bench.allow('0:ada');
    bench.tick(DEADLINE_MILLIS - 1);
    expect(reported.answers).toEqual([]);
    bench.tick(1);
    expect(reported.answers).toMatchObject([{ kind: 'unavailable', reason: 'deadline' }]);
    bench.forwarded[0]?.answer(GRANT);
    bench.runOut();
    expect(reported.answers).toHaveLength(1);
    expect(bench.targets).toEqual([2]);
  });

  it.each([
    ['another node', 2],
    ['this node', SELF],
  ])('may have proposed it, so the answer says so: %s', (_what, leader) => {
    const bench = new RouterBench();
    bench.leads(0, leader);
    const reported = bench.allow('0:ada');
    bench.runOut();
    expect(reported.answers).toEqual([unavailable('deadline', true)]);
  });

  it('is not asked forever: the next request goes to another replica', () => {
    const bench = new RouterBench();
    bench.reply = ({ to }) => (to === 2 ? undefined : GRANT);
    const first = bench.allow('5:ada');
    bench.suspect(2);
    expect(bench.allow('5:bob').answers).toEqual([GRANT]);
    bench.runOut();
    expect(first.answers).toEqual([unavailable('deadline', true)]);
    // Also if it has answered before.
    bench.reply = ({ to }) => (to === 3 ? undefined : GRANT);
    bench.allow('5:cyd');
    bench.suspected.delete(2);
    bench.suspect(3);
    expect(bench.allow('5:dan').answers).toEqual([GRANT]);
    expect(bench.targets).toEqual([2, 3, 3, 2]);
  });

  it('still gets other requests meanwhile: one slow request delays no other', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.leads(1, SELF);
    bench.partition(1).reply = () => GRANT;
    const slow = bench.allow('0:slow');
    const quick = Array.from({ length: 50 }, (_, i) => bench.allow(`1:${i}`));
    expect(quick.every(({ answers }) => answers.length === 1)).toBe(true);
    expect(bench.router.openCount).toBe(1);
    bench.runOut();
    expect(slow.answers).toHaveLength(1);
  });
});

describe('an attempt whose outcome is unknown', () => {
  const lost = unavailable('unknown_outcome', true);

  it('is repeated when the request carries an id', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = bench.allow('0:ada', { requestId: 'r-1' });
    bench.forwarded[0]?.answer(lost);
    expect(reported.answers).toEqual([]);
    bench.leads(0, 3);
    expect(bench.targets).toEqual([2, 3]);
    expect(bench.forwarded[1]?.request).toEqual({ userId: '0:ada', requestId: 'r-1' });
    expect(bench.forwarded[1]?.deadlineMillis).toBe(bench.forwarded[0]?.deadlineMillis);
    bench.forwarded[1]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
  });

  it('may have been granted: a client that used an id twice gets no conflict for it', () => {
    const repeat: Answer = { kind: 'decision', decision: decisionOf(), isRepeat: true };
    for (const isLost of [true, false]) {
      const bench = new RouterBench();
      bench.leads(0, 2);
      const reported = bench.allow('0:ada', { requestId: 'r-1' });
      bench.forwarded[0]?.answer(isLost ? lost : notLeader(3, 2));
      bench.leads(0, 3);
      bench.forwarded[1]?.answer(repeat);
      expect(reported.answers).toEqual([isLost ? GRANT : repeat]);
    }
  });

  it('is never repeated without one', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = bench.allow('0:ada');
    bench.forwarded[0]?.answer(lost);
    bench.leads(0, 3);
    expect(reported.answers).toEqual([lost]);
    bench.runOut();
    expect(bench.targets).toEqual([2]);
  });

  it('is remembered, for any answers of later attempts', () => {
    for (const later of [
      unavailable('overloaded', false),
      unavailable('low_disk', false),
      unavailable('deadline', false),
    ]) {
      const bench = new RouterBench();
      bench.leads(0, 2);
      const reported = bench.allow('0:ada', { requestId: 'r-1' });
      bench.forwarded[0]?.answer(lost);
      bench.leads(0, 3);
      bench.forwarded[1]?.answer(later);
      expect(reported.answers).toEqual([{ ...later, proposed: true }]);
    }
  });

  it('may still be granted, by a frame that was on its way when the connection broke, even if others refuse it', () => {
    const invalid: Answer = { kind: 'invalid', field: 'timestampMillis', message: 'too far ahead' };
    const conflict: Answer = { kind: 'conflict', field: 'rule', message: 'is that of another request' };
    const denial: Answer = { kind: 'decision', decision: decisionOf({ allowed: false, remaining: 0 }) };
    for (const refusal of [invalid, conflict, denial]) {
      const bench = new RouterBench();
      bench.leads(0, 2);
      const reported = bench.allow('0:ada', { requestId: 'r-1' });
      bench.forwarded[0]?.answer(lost);
      bench.leads(0, 3);
      bench.forwarded[1]?.answer(refusal);
      expect(reported.answers).toEqual([lost]);
    }
  });

  it('is reported at the deadline', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = bench.allow('0:ada', { requestId: 'r-1' });
    bench.forwarded[0]?.answer(lost);
    bench.runOut();
    expect(reported.answers).toMatchObject([{ kind: 'unavailable', proposed: true }]);
  });
});

describe('a refusal', () => {
  it.each(['overloaded', 'low_disk', 'deadline'] as const)(
    'for being %s is passed on and not retried',
    (reason) => {
      const bench = new RouterBench();
      bench.leads(0, 2);
      const reported = bench.allow('0:ada', { requestId: 'r-1' });
      bench.forwarded[0]?.answer(unavailable(reason, false));
      expect(reported.answers).toEqual([unavailable(reason, false)]);
      bench.runOut();
      expect(bench.targets).toEqual([2]);
    },
  );

  it.each(['no_leader', 'starting'] as const)(
    'for %s, with nothing proposed, is repeated with or without an id',
    (reason) => {
      const bench = new RouterBench();
      bench.leads(0, 2);
      bench.reply = ({ to }) => (to === 3 ? notLeader(2, 1) : undefined);
      const reported = bench.allow('0:ada');
      bench.forwarded[0]?.answer(unavailable(reason, false));
      expect(bench.targets).toEqual([2, 3]);
      bench.tick();
      expect(bench.targets).toEqual([2, 3, 2]);
      bench.forwarded[2]?.answer(GRANT);
      expect(reported.answers).toEqual([GRANT]);
    },
  );
});
