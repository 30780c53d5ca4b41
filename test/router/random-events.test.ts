/** Random answers, leaders, links and silences: each request is answered once and in time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../src/api/user-request.ts';
import {
  DEADLINE_MILLIS,
  type FakePartition,
  GRANT,
  notLeader,
  RouterBench,
  TICK_MILLIS,
  unavailable,
} from './fixtures.ts';
import { ROUNDS } from '../raft/seeded.ts';

const answer: fc.Arbitrary<Answer> = fc.oneof(
  fc.constant(GRANT),
  fc.tuple(fc.constantFrom(0, 1, 2, 3, 9), fc.nat(60)).map(([leader, term]) => notLeader(leader, term)),
  fc
    .tuple(
      fc.constantFrom('no_leader', 'deadline', 'overloaded', 'low_disk', 'starting', 'unknown_outcome'),
      fc.boolean(),
    )
    .map(([reason, proposed]) => unavailable(reason, proposed)),
  fc.constant<Answer>({ kind: 'invalid', field: 'rule', message: 'there is no such rule' }),
);

const step = fc.oneof(
  fc.record({ do: fc.constant('allow'), partition: fc.nat(7), withId: fc.boolean() }),
  fc.record({ do: fc.constant('answer'), which: fc.nat(), answer }),
  fc.record({ do: fc.constant('leader'), partition: fc.nat(1), leader: fc.constantFrom(0, 1, 2, 3) }),
  fc.record({ do: fc.constant('link'), node: fc.constantFrom(2, 3), up: fc.boolean() }),
  fc.record({ do: fc.constant('suspect'), node: fc.constantFrom(2, 3), isSilent: fc.boolean() }),
  fc.record({ do: fc.constant('tick'), millis: fc.constantFrom(1, TICK_MILLIS, 300) }),
);

describe('any sequence of events', () => {
  it('each request is answered exactly once, at the latest one tick after its deadline', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const bench = new RouterBench({ openMax: 10 });
        const reported: { answers: unknown[]; untilMillis: number }[] = [];
        const asked = (): FakePartition['asked'] => [
          ...bench.forwarded,
          ...[...bench.local.values()].flatMap((partition) => partition.asked),
        ];
        for (const each of steps) {
          if (each.do === 'allow') {
            const more = each.withId ? { requestId: `${reported.length}` } : {};
            const untilMillis = bench.nowMillis + DEADLINE_MILLIS;
            reported.push({ ...bench.allow(`${each.partition}:u`, more), untilMillis });
          } else if (each.do === 'answer') {
            const open = asked();
            open[each.which % Math.max(1, open.length)]?.answer(each.answer);
          } else if (each.do === 'leader') {
            bench.leads(each.partition, each.leader);
          } else if (each.do === 'suspect') {
            if (each.isSilent) bench.suspect(each.node);
            else bench.suspected.delete(each.node);
          } else if (each.do === 'link') {
            if (each.up) bench.connected.add(each.node);
            else if (bench.connected.delete(each.node)) bench.router.peerUnreachable(each.node);
          } else {
            bench.tick(each.millis);
          }
          for (const { answers, untilMillis } of reported) {
            expect(answers.length).toBeLessThanOrEqual(1);
            const isOverdue = each.do === 'tick' && untilMillis <= bench.nowMillis;
            expect(answers.length).toBeGreaterThanOrEqual(isOverdue ? 1 : 0);
          }
          expect(bench.router.openCount).toBe(reported.filter(({ answers }) => answers.length === 0).length);
          expect(bench.router.openCount).toBeLessThanOrEqual(10);
        }
        bench.router.close();
        expect(reported.every(({ answers }) => answers.length === 1)).toBe(true);
      }),
      { seed: 10, numRuns: 500 * ROUNDS },
    );
  });
});
