/** Tests the search for a leader: shared by all requests of a partition, by term, around silent nodes. */
import { describe, expect, it } from 'vitest';
import { LeaderSearch } from '../../src/router/leader-search.ts';
import {
  type Asked,
  DEADLINE_MILLIS,
  GRANT,
  CHECK_MILLIS,
  CHECK_PAUSE_TICKS,
  notLeader,
  PAUSE_MILLIS_MAX,
  ROUNDS_PER_DEADLINE_MAX,
  RouterBench,
  TICK_MILLIS,
  unavailable,
} from './fixtures.ts';

function askedOf(bench: RouterBench, node: number): number {
  return bench.targets.filter((to) => to === node).length;
}

describe('a hundred requests without a leader', () => {
  it('ask each node once in a round, not a hundred times', () => {
    const bench = new RouterBench({ nodes: 5 });
    bench.reply = () => notLeader(0);
    const reported = Array.from({ length: 100 }, (_, i) => bench.allow(`5:user-${i}`));
    expect([2, 3, 4, 5].map((node) => askedOf(bench, node))).toEqual([1, 1, 1, 1]);
    bench.runOut();
    for (const node of [2, 3, 4, 5]) {
      expect(askedOf(bench, node)).toBeGreaterThan(4);
      expect(askedOf(bench, node)).toBeLessThanOrEqual(ROUNDS_PER_DEADLINE_MAX);
    }
    expect(reported.every(({ answers }) => answers.length === 1)).toBe(true);
  });

  it('are all sent to the leader as soon as one of them was decided', () => {
    const bench = new RouterBench({ nodes: 5 });
    bench.reply = ({ to }) => (to === 5 ? undefined : notLeader(0));
    const reported = Array.from({ length: 100 }, (_, i) => bench.allow(`5:user-${i}`));
    expect(bench.targets).toEqual([2, 3, 4, 5]);
    bench.reply = ({ to }) => (to === 5 ? GRANT : notLeader(0));
    bench.forwarded[3]?.answer(GRANT);
    expect(reported.every(({ answers }) => answers[0] === GRANT)).toBe(true);
    expect(askedOf(bench, 5)).toBe(100);
    expect(bench.forwarded).toHaveLength(103);
  });

  it.each(['at_capacity', 'low_disk', 'overloaded'] as const)(
    'do not ask all nodes one by one after the leader refused one as %s',
    (reason) => {
      const bench = new RouterBench({ nodes: 5 });
      const reported = Array.from({ length: 100 }, (_, i) => bench.allow(`5:user-${i}`));
      bench.reply = ({ to }) => (to === 5 ? unavailable(reason, false) : notLeader(5));
      bench.forwarded[0]?.answer(notLeader(5));
      expect(reported.every(({ answers }) => answers.length === 1)).toBe(true);
      expect([askedOf(bench, 5), bench.forwarded.length]).toEqual([100, 101]);
    },
  );

  it('are sent at once when the replica on this node learns of a leader', () => {
    const bench = new RouterBench();
    bench.leads(0, 0);
    const reported = Array.from({ length: 100 }, (_, i) => bench.allow(`0:user-${i}`));
    bench.ticks(3);
    expect(bench.forwarded).toEqual([]);
    bench.reply = () => GRANT;
    bench.leads(0, 3);
    expect(reported.every(({ answers }) => answers[0] === GRANT)).toBe(true);
  });

  it('are not all sent to a node that turns out not to lead', () => {
    const bench = new RouterBench({ nodes: 5 });
    bench.reply = ({ to }) => notLeader(to === 2 ? 4 : 0);
    for (let i = 0; i < 100; i += 1) bench.allow(`5:user-${i}`);
    expect(bench.targets).toEqual([2, 4, 3, 5]);
  });
});

describe('a node that returned a decision', () => {
  it('may have relayed the request: a report of another leader in this term replaces it', () => {
    const search = new LeaderSearch({
      candidates: () => [2, 3],
      isReachable: () => true,
      pauseMillisMin: 10,
      pauseMillisMax: 100,
    });
    search.reported(2, 7);
    search.lost();
    search.proved(3);
    expect(search.reported(1, 6)).toBe(false);
    expect(search.reported(1, 7)).toBe(true);
    expect(search.leader).toBe(1);
    expect(search.reported(2, 7)).toBe(false);
  });
});

describe('a replica that has moved away from this node', () => {
  it('is not asked any more, although it was the known leader until then', () => {
    const bench = new RouterBench();
    bench.leads(1, 1);
    bench.local.delete(1);
    bench.reply = ({ to }) => (to === 3 ? GRANT : notLeader(0));
    expect(bench.allow('1:user').answers).toEqual([GRANT]);
    expect(bench.targets).toEqual([2, 3]);
  });
});

describe('with links that are slow compared to the deadline', () => {
  /** Every answer takes this long. */
  const ANSWER_TICKS = 48;

  /** Runs `count` ticks; each request is answered after `ANSWER_TICKS`. */
  function run(bench: RouterBench, count: number): void {
    const due = new Map<number, Asked[]>();
    let seen = 0;
    for (let i = 0; i < count; i += 1) {
      due.set(i + ANSWER_TICKS, bench.forwarded.slice(seen));
      seen = bench.forwarded.length;
      bench.tick();
      for (const asked of due.get(i) ?? []) asked.answer(asked.to === 6 ? GRANT : notLeader(0));
    }
  }

  it('a search continues where the last request left it, so a node that can reach the leader finds it in the end', () => {
    const bench = new RouterBench({ nodes: 6 });
    const statuses: string[] = [];
    for (let i = 0; i < 4; i += 1) {
      const reported = bench.allow(`5:user-${i}`);
      run(bench, DEADLINE_MILLIS / TICK_MILLIS);
      statuses.push(reported.answers[0]?.kind ?? 'none');
    }
    expect(statuses.at(-1)).toBe('decision');
    expect(statuses.filter((kind) => kind === 'decision').length).toBeGreaterThanOrEqual(1);
    expect(new Set(bench.targets.slice(0, 5))).toEqual(new Set([2, 3, 4, 5, 6]));
  });

  it('a former leader that denies too late is not asked forever', () => {
    const bench = new RouterBench({ nodes: 3 });
    bench.router.leaderChanged(5, 2, 3);
    const reported = bench.allow('5:ada');
    bench.ticks(DEADLINE_MILLIS / TICK_MILLIS);
    expect(reported.answers).toEqual([unavailable('deadline', true)]);
    bench.forwarded[0]?.answer(notLeader(0));
    // From here on the node probes for a leader itself.
    bench.tick();
    expect(bench.targets).toEqual([2, 3]);
    bench.ticks((CHECK_MILLIS + PAUSE_MILLIS_MAX) / TICK_MILLIS + CHECK_PAUSE_TICKS);
    bench.forwarded[1]?.answer(notLeader(0));
    expect(bench.targets).toEqual([2, 3, 2]);
  });

  it('a hint counts at any attempt, not only at the first', () => {
    const bench = new RouterBench({ nodes: 6 });
    bench.allow('5:ada');
    bench.forwarded[0]?.answer(notLeader(0));
    bench.forwarded[1]?.answer(notLeader(6));
    expect(bench.targets).toEqual([2, 3, 6]);
  });
});

describe('a hint', () => {
  it('that is older than the known leader is ignored', () => {
    const bench = new RouterBench({ nodes: 5 });
    bench.leads(0, 2, 7);
    bench.reply = ({ to }) => (to === 2 ? notLeader(0) : to === 3 ? notLeader(4, 6) : undefined);
    bench.allow('0:ada');
    // Node 3 names 4, of an earlier term: 4 is asked in its turn, and not before.
    expect(bench.targets).toEqual([2, 3, 4]);
    const other = new RouterBench({ nodes: 5 });
    other.leads(0, 2, 7);
    other.reply = ({ to }) => (to === 2 ? notLeader(0) : to === 3 ? notLeader(5, 6) : undefined);
    other.allow('0:ada');
    expect(other.targets).toEqual([2, 3, 4]);
  });

  it('does not send a request back, in the same round, to a node that said it does not lead', () => {
    const bench = new RouterBench({ nodes: 4 });
    bench.leads(0, 2, 7);
    bench.reply = ({ to }) => (to === 2 ? notLeader(0) : notLeader(2, 7));
    bench.allow('0:ada');
    expect(bench.targets).toEqual([2, 3, 4]);
    bench.tick();
    expect(bench.targets).toEqual([2, 3, 4, 2, 3, 4]);
  });

  it('of a newer term replaces the known leader', () => {
    const bench = new RouterBench({ nodes: 4 });
    bench.leads(0, 2, 7);
    bench.allow('0:ada');
    bench.forwarded[0]?.answer(notLeader(4, 8));
    expect(bench.targets).toEqual([2, 4]);
    bench.forwarded[1]?.answer(GRANT);
    // The replica on this node is behind.
    bench.leads(0, 2, 7);
    bench.allow('0:bob');
    expect(bench.targets).toEqual([2, 4, 4]);
  });
});
