/** A circuit breaker for each partition: who asks while its leader answers nobody does not wait for a deadline. */
import { describe, expect, it } from 'vitest';
import { Breaker } from '../../src/router/breaker.ts';
import {
  DEADLINE_MILLIS,
  GRANT,
  notLeader,
  RouterBench,
  SELF,
  SILENT_TICKS_MAX,
  TICK_MILLIS,
  type Told,
  unavailable,
} from './fixtures.ts';

const AT_ONCE = [unavailable('no_leader', false)];

/** Partition 5 is led by nobody who answers, and one request has waited out its deadline. */
function opened(): RouterBench {
  const bench = new RouterBench();
  bench.connected.clear();
  bench.allow('5:ada');
  bench.runOut();
  return bench;
}

describe('while the leader of a partition answers nobody', () => {
  it('requests wait for their deadline first, as an election may take a while', () => {
    const bench = new RouterBench();
    bench.connected.clear();
    const told = Array.from({ length: 10 }, (_, i): Told => bench.allow(`5:user-${i}`));
    bench.tick(DEADLINE_MILLIS - TICK_MILLIS);
    expect(told.flatMap(({ answers }) => answers)).toEqual([]);
  });

  it('all but one are refused at once when the first has come to its deadline, certainly not proposed', () => {
    const bench = opened();
    const probe = bench.allow('5:probe');
    expect(probe.answers).toEqual([]);
    for (let i = 0; i < 10; i += 1) expect(bench.allow(`5:user-${i}`).answers).toEqual(AT_ONCE);
    expect(bench.router.openCount).toBe(1);
  });

  it('what was granted is given back all the same, as soon as somebody leads', () => {
    const bench = opened();
    bench.allow('5:probe');
    const answers: unknown[] = [];
    bench.router.ask({ ask: 'refund', userId: '5:ada', requestId: 'r' }, (answer) => answers.push(answer));
    expect(answers).toEqual([]);
  });

  it('one request finds out when it answers again, and from then on all go on', () => {
    const bench = opened();
    const probe = bench.allow('5:probe');
    bench.connected.add(3);
    bench.reply = ({ to }) => (to === 3 ? GRANT : notLeader(0));
    bench.tick();
    expect(probe.answers).toEqual([GRANT]);
    expect(bench.allow('5:bob').answers).toEqual([GRANT]);
  });

  it('another request may try when the one that does is stuck', () => {
    const bench = opened();
    bench.allow('5:stuck');
    bench.ticks(SILENT_TICKS_MAX - 1);
    expect(bench.allow('5:early').answers).toEqual(AT_ONCE);
    bench.tick();
    expect(bench.allow('5:next').answers).toEqual([]);
    expect(bench.allow('5:last').answers).toEqual(AT_ONCE);
  });

  it('refusals at once go on as long as those that try come to their deadlines, and no longer', () => {
    const bench = opened();
    bench.allow('5:probe');
    bench.runOut();
    bench.allow('5:probe-2');
    expect(bench.allow('5:ada').answers).toEqual(AT_ONCE);
    bench.runOut();
    bench.ticks(SILENT_TICKS_MAX);
    const told = [bench.allow('5:ada'), bench.allow('5:bob')];
    expect(told.flatMap(({ answers }) => answers)).toEqual([]);
  });

  it('other partitions go on', () => {
    const bench = opened();
    bench.allow('5:probe');
    bench.leads(0, SELF);
    bench.partition(0).reply = () => GRANT;
    expect(bench.allow('0:ada').answers).toEqual([GRANT]);
  });
});

describe('news of a leader', () => {
  it('end it before anybody has asked', () => {
    const bench = new RouterBench();
    bench.allow('0:ada');
    bench.runOut();
    bench.allow('0:probe');
    expect(bench.allow('0:bob').answers).toEqual(AT_ONCE);
    bench.leads(0, SELF);
    bench.partition(0).reply = () => GRANT;
    expect([bench.allow('0:bob').answers, bench.allow('0:cyd').answers]).toEqual([[GRANT], [GRANT]]);
  });
});

describe('a leader that is slow, and answers others', () => {
  it('is waited for', () => {
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

describe('a process that was stopped', () => {
  it('finds nobody silent when it goes on', () => {
    const breaker = new Breaker({ silentTicksMin: 10, openTicks: 5, probeTicks: 5 });
    const request = {};
    expect(breaker.admits(request)).toBe(true);
    breaker.tick();
    breaker.ended(request, true);
    expect(breaker.state).toBe('closed');
  });
});

describe('a breaker', () => {
  it('is closed, open, half-open, and closed again', () => {
    const breaker = new Breaker({ silentTicksMin: 2, openTicks: 3, probeTicks: 9 });
    const [first, probe] = [{}, {}];
    breaker.admits(first);
    breaker.tick();
    breaker.tick();
    breaker.ended(first, true);
    expect(breaker.state).toBe('open');
    expect([breaker.admits(probe), breaker.state]).toEqual([true, 'halfOpen']);
    breaker.heard();
    expect([breaker.admits({}), breaker.admits({}), breaker.state]).toEqual([true, true, 'closed']);
  });
});
