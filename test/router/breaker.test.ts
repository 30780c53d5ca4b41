/** Tests the circuit breaker of a partition: while its leader is silent, requests are refused at once. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import { Breaker } from '../../src/router/breaker.ts';
import { limitStatusOf } from '../api/decision-of.ts';
import {
  DEADLINE_MILLIS,
  GRANT,
  notLeader,
  RouterBench,
  CHECK_MILLIS,
  CHECK_PAUSE_TICKS,
  PAUSE_MILLIS_MAX,
  ROUNDS_PER_DEADLINE_MAX,
  SELF,
  SILENT_TICKS_MAX,
  TICK_MILLIS,
  type Reported,
  unavailable,
} from './fixtures.ts';

const STATUS: Answer = {
  kind: 'keyStatus',
  keyStatus: { limits: [limitStatusOf()], decided: { term: 1, index: 9, timeMillis: 5 }, rulesVersion: 7 },
};
const AT_ONCE = [unavailable('no_leader', false)];

/** Partition 5 has a silent leader, and one request has waited until its deadline. */
function opened(): RouterBench {
  const bench = new RouterBench();
  bench.connected.clear();
  bench.allow('5:ada');
  bench.runOut();
  return bench;
}

describe('while no leader of a partition answers', () => {
  it('requests first wait until their deadline, because an election may take a while', () => {
    const bench = new RouterBench();
    bench.connected.clear();
    const reported = Array.from({ length: 10 }, (_, i): Reported => bench.allow(`5:user-${i}`));
    bench.tick(DEADLINE_MILLIS - TICK_MILLIS);
    expect(reported.flatMap(({ answers }) => answers)).toEqual([]);
  });

  it('all requests are refused at once after the first reached its deadline, and certainly not proposed', () => {
    const bench = opened();
    for (let i = 0; i < 10; i += 1) expect(bench.allow(`5:user-${i}`).answers).toEqual(AT_ONCE);
    expect(bench.router.openCount).toBe(0);
  });

  it('a single caller is refused as well, for as long as the silence lasts', () => {
    const bench = opened();
    for (let i = 0; i < 10; i += 1) {
      bench.runOut();
      expect(bench.allow('5:ada').answers).toEqual(AT_ONCE);
    }
  });

  it('refunds are not refused, and are applied as soon as there is a leader', () => {
    const bench = opened();
    const answers: unknown[] = [];
    bench.router.ask({ ask: 'refund', userId: '5:ada', requestId: 'r' }, (answer) => answers.push(answer));
    expect(answers).toEqual([]);
  });

  it('the node searches for a leader itself, and from the first answer of one on sends requests again', () => {
    const bench = opened();
    bench.connected.add(3);
    bench.tick();
    const peek = { ask: 'peek', userId: '5:ada', ruleId: '0/1ms' };
    expect(bench.forwarded).toMatchObject([{ to: 3, partition: 5, request: peek }]);
    expect(bench.allow('5:bob').answers).toEqual(AT_ONCE);
    bench.forwarded[0]?.answer(STATUS);
    bench.reply = () => GRANT;
    expect([bench.allow('5:bob').answers, bench.allow('5:cyd').answers]).toEqual([[GRANT], [GRANT]]);
    expect(bench.targets).toEqual([3, 3, 3]);
  });

  it('the node repeats a probe that was not answered in time, after a pause', () => {
    const bench = opened();
    bench.connected.add(3);
    bench.tick();
    bench.ticks(CHECK_MILLIS / TICK_MILLIS + CHECK_PAUSE_TICKS - 1);
    expect(bench.targets).toEqual([3]);
    bench.ticks(PAUSE_MILLIS_MAX / TICK_MILLIS + 1);
    expect(bench.targets).toEqual([3, 3]);
  });

  it('a late answer to a probe counts', () => {
    const bench = opened();
    bench.connected.add(3);
    bench.tick();
    bench.runOut();
    bench.forwarded[0]?.answer(STATUS);
    bench.reply = () => GRANT;
    bench.tick();
    expect(bench.allow('5:bob').answers).toEqual([GRANT]);
  });

  it.each([0, 5, 50, 500, 5_000])(
    'requests are sent within a second after a quorum is back, after %i ticks',
    (ticks) => {
      const bench = opened();
      for (const node of [2, 3]) bench.connected.add(node);
      bench.reply = () => notLeader(0);
      bench.ticks(ticks);
      expect(bench.allow('5:ada').answers).toEqual(AT_ONCE);
      bench.reply = ({ to, request }) => {
        if (to !== 3) return notLeader(0);
        return request.ask === 'peek' ? STATUS : GRANT;
      };
      bench.ticks(1_000 / TICK_MILLIS);
      expect(bench.allow('5:ada').answers).toEqual([GRANT]);
    },
  );

  it('the node does not probe more often than the pauses of its search allow', () => {
    const bench = opened();
    for (const node of [2, 3]) bench.connected.add(node);
    bench.reply = () => notLeader(0);
    bench.runOut();
    const before = bench.targets.length;
    bench.runOut();
    expect(bench.targets.length - before).toBeLessThanOrEqual(2 * ROUNDS_PER_DEADLINE_MAX);
  });

  it('other partitions are not affected', () => {
    const bench = opened();
    bench.leads(0, SELF);
    bench.partition(0).reply = () => GRANT;
    expect(bench.allow('0:ada').answers).toEqual([GRANT]);
  });
});

describe('news of a leader', () => {
  it('closes the breaker before any request comes', () => {
    const bench = new RouterBench();
    bench.allow('0:ada');
    bench.runOut();
    expect(bench.allow('0:bob').answers).toEqual(AT_ONCE);
    bench.leads(0, SELF);
    bench.partition(0).reply = () => GRANT;
    expect([bench.allow('0:bob').answers, bench.allow('0:cyd').answers]).toEqual([[GRANT], [GRANT]]);
  });
});

describe('a leader that is slow, and answers others', () => {
  it('does not open the breaker', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const slow = bench.allow('0:slow');
    bench.ticks(SILENT_TICKS_MAX);
    bench.allow('0:ada');
    bench.forwarded[1]?.answer(GRANT);
    bench.runOut();
    expect(slow.answers).toEqual([unavailable('deadline', true)]);
    expect([bench.allow('0:bob').answers, bench.allow('0:cyd').answers]).toEqual([[], []]);
  });
});

describe('a breaker after its process was stopped', () => {
  it('counts no leader as silent when it resumes', () => {
    const breaker = new Breaker({ silentTicksMin: 10, pauseTicks: 5 });
    expect(breaker.admits()).toBe(true);
    breaker.tick();
    breaker.overdue('ada');
    expect(breaker.state).toBe('closed');
  });
});

describe('a breaker', () => {
  it('is closed, open with one probe at a time, and closed again', () => {
    const breaker = new Breaker({ silentTicksMin: 2, pauseTicks: 3 });
    expect(breaker.admits()).toBe(true);
    expect([breaker.tick(), breaker.tick()]).toEqual([undefined, undefined]);
    breaker.overdue('ada');
    expect([breaker.state, breaker.admits()]).toEqual(['open', false]);
    expect([breaker.tick(), breaker.tick(), breaker.tick()]).toEqual(['ada', undefined, undefined]);
    breaker.searchEnded();
    expect([breaker.tick(), breaker.tick(), breaker.tick()]).toEqual([undefined, undefined, 'ada']);
    breaker.heard();
    breaker.searchEnded();
    expect([breaker.state, breaker.admits(), breaker.admits()]).toEqual(['closed', true, true]);
    expect(Array.from({ length: 9 }, () => breaker.tick()).every((key) => key === undefined)).toBe(true);
  });
});
