/** Tests to which node a request is sent, and when it waits. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import {
  DEADLINE_MILLIS,
  GRANT,
  notLeader,
  ROUNDS_PER_DEADLINE_MAX,
  RouterBench,
  SELF,
  unavailable,
} from './fixtures.ts';

describe('a request', () => {
  it('is decided here, at once, when this node leads the partition', () => {
    const bench = new RouterBench();
    bench.leads(0, SELF);
    bench.partition(0).reply = () => GRANT;
    const reported = bench.allow('0:ada');
    expect(reported).toEqual({ answers: [GRANT], partitions: [0] });
    expect(bench.forwarded).toEqual([]);
    expect(bench.router.openCount).toBe(0);
  });

  it('goes to the known leader, with its deadline', () => {
    const bench = new RouterBench();
    bench.leads(1, 3);
    const reported = bench.allow('1:ada', { cost: 2 });
    expect(bench.forwarded).toMatchObject([
      {
        to: 3,
        partition: 1,
        request: { userId: '1:ada', cost: 2 },
        deadlineMillis: bench.nowMillis + DEADLINE_MILLIS,
      },
    ]);
    expect(reported.answers).toEqual([]);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported).toEqual({ answers: [GRANT], partitions: [1] });
  });

  it('is sent without a search once the leader is known', () => {
    const bench = new RouterBench();
    bench.reply = () => GRANT;
    bench.allow('6:ada');
    bench.connected.clear();
    bench.allow('6:bob');
    // Not connected, but asked nevertheless: no search happened.
    expect(bench.targets).toEqual([2, 2]);
  });

  it('goes to the replicas of a remote partition in turn until one decides, which is remembered', () => {
    const bench = new RouterBench();
    bench.reply = ({ to }) => (to === 3 ? GRANT : notLeader(0));
    const reported = bench.allow('5:ada');
    bench.tick();
    expect(reported.answers).toEqual([GRANT]);
    expect(bench.targets).toEqual([2, 3]);
    bench.allow('5:bob');
    expect(bench.targets).toEqual([2, 3, 3]);
  });

  it('goes to the leader that the own replica names if none is cached', () => {
    const bench = new RouterBench();
    Object.assign(bench.partition(0), { leader: 3, term: 4 });
    bench.allow('0:ada');
    expect(bench.targets).toEqual([3]);
  });

  it('is refused when the answer names a field, and not asked again', () => {
    const bench = new RouterBench();
    bench.leads(0, SELF);
    const invalid: Answer = { kind: 'invalid', field: 'cost', message: 'cost must be at most 5' };
    bench.partition(0).reply = () => invalid;
    expect(bench.allow('0:ada').answers).toEqual([invalid]);
    bench.runOut();
    expect(bench.partition(0).asked).toHaveLength(1);
  });
});

describe('a request that waited before the node read it', () => {
  it('has only the rest of its time', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.ageMillis = 400;
    const reported = bench.allow('0:ada');
    expect(bench.forwarded[0]?.deadlineMillis).toBe(bench.nowMillis + DEADLINE_MILLIS - 400);
    bench.tick(DEADLINE_MILLIS - 400);
    expect(reported.answers).toEqual([unavailable('deadline', true)]);
  });

  it('for longer than its deadline is sent nowhere', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.leads(1, SELF);
    bench.ageMillis = DEADLINE_MILLIS;
    for (const userId of ['0:ada', '1:bob', '5:cyd']) {
      expect(bench.allow(userId).answers).toEqual([unavailable('deadline', false)]);
    }
    expect([bench.forwarded, bench.partition(1).asked, bench.router.openCount]).toEqual([[], [], 0]);
  });
});

describe('while no leader is known', () => {
  it('a request waits, and is sent when there is one', () => {
    const bench = new RouterBench();
    const reported = bench.allow('0:ada');
    bench.tick();
    expect([reported.answers, bench.forwarded, bench.partition(0).asked]).toEqual([[], [], []]);
    bench.leads(0, 2);
    expect(bench.targets).toEqual([2]);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
  });

  it('a request is answered at its deadline, once, as certainly not proposed', () => {
    const bench = new RouterBench();
    bench.connected.clear();
    const reported = bench.allow('0:ada');
    bench.tick(DEADLINE_MILLIS - 1);
    expect(reported.answers).toEqual([]);
    bench.tick(1);
    expect(reported).toEqual({ answers: [unavailable('no_leader', false)], partitions: [0] });
    bench.runOut();
    bench.connected.add(2);
    bench.leads(0, 2);
    bench.router.close();
    expect(reported.answers).toHaveLength(1);
    expect(bench.forwarded).toEqual([]);
    expect(bench.router.openCount).toBe(0);
  });

  it('unreachable nodes are not asked', () => {
    const bench = new RouterBench();
    bench.connected.clear();
    bench.leads(0, 2);
    bench.allow('0:ada');
    bench.allow('5:bob');
    bench.tick();
    expect(bench.forwarded).toEqual([]);
    bench.connected.add(2);
    bench.tick();
    expect(bench.targets).toEqual([2, 2]);
  });

  it('a request is answered with no_leader, even after a node was asked', () => {
    const bench = new RouterBench();
    bench.reply = () => notLeader(0);
    const reported = bench.allow('5:ada');
    bench.runOut();
    expect(reported.answers).toEqual([unavailable('no_leader', false)]);
  });

  it('a new leader of one partition does not repeat the requests of another', () => {
    const bench = new RouterBench();
    bench.reply = () => notLeader(0);
    bench.allow('5:ada');
    expect(bench.targets).toEqual([2, 3]);
    bench.leads(0, 2);
    bench.leads(1, 2);
    expect(bench.targets).toEqual([2, 3]);
  });
});

describe('"not the leader"', () => {
  it('with a hint is followed at once', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    const reported = bench.allow('0:ada');
    bench.forwarded[0]?.answer(notLeader(3));
    expect(bench.targets).toEqual([2, 3]);
    bench.forwarded[1]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
    // The next request goes there directly.
    bench.allow('0:bob');
    expect(bench.targets).toEqual([2, 3, 3]);
  });

  it('may name this node', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.partition(0).reply = () => GRANT;
    const reported = bench.allow('0:ada');
    bench.forwarded[0]?.answer(notLeader(SELF));
    expect(reported.answers).toEqual([GRANT]);
  });

  it.each([
    ['nobody', 0],
    ['itself', 2],
  ])('makes the request wait when it names %s', (_who, hint) => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.connected.delete(3);
    bench.allow('0:ada');
    bench.forwarded[0]?.answer(notLeader(hint));
    expect(bench.targets).toEqual([2]);
  });

  it.each([
    ['here', '0:ada'],
    ['elsewhere', '5:ada'],
  ])(
    'from two nodes that name each other makes the request go round in paused rounds: %s',
    (_where, userId) => {
      const bench = new RouterBench();
      bench.leads(0, 2);
      bench.partition(0).reply = () => notLeader(2, 1);
      bench.reply = ({ to }) => notLeader(to === 2 ? 3 : 2);
      const reported = bench.allow(userId);
      // The first round may follow the news of a newer term.
      expect(bench.forwarded.length).toBeLessThanOrEqual(4);
      bench.runOut();
      expect(reported.answers).toEqual([unavailable('no_leader', false)]);
      expect(bench.forwarded.length).toBeLessThanOrEqual(2 * ROUNDS_PER_DEADLINE_MAX + 2);
    },
  );

  it('from this very node, which just stepped down, sends the request to the new leader', () => {
    const bench = new RouterBench();
    bench.leads(0, SELF);
    const reported = bench.allow('0:ada');
    bench.partition(0).leader = 3;
    bench.leads(0, 3);
    bench.partition(0).asked[0]?.answer(notLeader(3));
    expect(bench.targets).toEqual([3]);
    bench.forwarded[0]?.answer(GRANT);
    expect(reported.answers).toEqual([GRANT]);
  });
});

describe('a broken connection', () => {
  it('makes the router forget the leaders behind it, and no others', () => {
    const bench = new RouterBench();
    bench.leads(0, 2);
    bench.leads(1, 3);
    bench.connected.delete(2);
    bench.router.peerUnreachable(2);
    bench.leads(0, 0);
    bench.allow('0:ada');
    bench.allow('1:bob');
    expect(bench.targets).toEqual([3]);
    bench.leads(0, 3);
    expect(bench.targets).toEqual([3, 3]);
  });
});

describe('open requests', () => {
  it('are bounded: more are refused as overloaded', () => {
    const bench = new RouterBench({ openMax: 3 });
    const waiting = [bench.allow('0:a'), bench.allow('0:b'), bench.allow('0:c')];
    expect(bench.router.openCount).toBe(3);
    expect(bench.allow('0:d')).toEqual({ answers: [unavailable('overloaded', false)], partitions: [0] });
    expect(bench.router.openCount).toBe(3);
    bench.leads(0, 2);
    for (const asked of bench.forwarded) asked.answer(GRANT);
    expect(waiting.map(({ answers }) => answers)).toEqual([[GRANT], [GRANT], [GRANT]]);
    expect(bench.router.openCount).toBe(0);
    expect(bench.allow('0:e').answers).toEqual([]);
  });

  it('are all answered when the router closes', () => {
    const bench = new RouterBench();
    bench.leads(1, 2);
    const waiting = bench.allow('0:a');
    const asked = bench.allow('1:b');
    bench.router.close();
    expect(waiting.answers).toEqual([unavailable('no_leader', false)]);
    expect(asked.answers).toMatchObject([{ kind: 'unavailable', reason: 'deadline' }]);
    expect(bench.router.openCount).toBe(0);
    bench.forwarded[0]?.answer(GRANT);
    expect(asked.answers).toHaveLength(1);
  });

  it('may cause new ones while they are answered', () => {
    const bench = new RouterBench();
    const second = new RouterBench();
    let answered = 0;
    bench.router.ask({ userId: '0:a' }, () => {
      bench.router.ask({ userId: '1:again' }, () => {
        answered += 1;
      });
    });
    bench.runOut();
    expect(bench.router.openCount).toBe(1);
    bench.runOut();
    expect(answered).toBe(1);
    expect(second.router.openCount).toBe(0);
  });
});
