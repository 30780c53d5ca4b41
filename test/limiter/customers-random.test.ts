/** Random overrides, blocks, resets and refunds, compared with filtered lists of grants. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';
import { ROUNDS } from '../raft/seeded.ts';

const WINDOW_MILLIS = 1_000;
const LIMIT = 4;
const USERS = ['ada', 'bob'] as const;

const user = fc.constantFrom(...USERS);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('ask'), user, cost: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('refund'), user, back: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('limit'), user, limit: fc.integer({ min: 0, max: 9 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('delete', 'reset', 'block', 'unblock', 'snapshot'), user }),
  },
);
const steps = fc.array(fc.tuple(fc.nat(400), step), { maxLength: 120 });

interface Grant {
  readonly atMillis: number;
  readonly requestId: string;
  cost: number;
}

/** A simple model of one user. */
class NaiveUser {
  limit = LIMIT;
  isBlocked = false;
  grants: Grant[] = [];
  /** All ids that were granted, the newest last. A reset does not forget them. */
  readonly ids: string[] = [];

  takes(cost: number, nowMillis: number): boolean {
    // In group time a window is a millisecond longer.
    const live = this.grants.filter(({ atMillis }) => atMillis > nowMillis - WINDOW_MILLIS - 1);
    return !this.isBlocked && live.reduce((sum, grant) => sum + grant.cost, cost) <= this.limit;
  }
}

describe('random customer commands', () => {
  it('never grant too much and never deny without reason', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const harness = new Harness();
        harness.rules(tableOf(1, [{ id: 'r', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' }]));
        const reported: unknown[] = [];
        const expected: unknown[] = [];
        const users = new Map(USERS.map((name) => [name, new NaiveUser()]));
        // Asks both the log and the quick denial before it.
        for (const [i, [gap, one]] of history.entries()) {
          harness.nowMillis += gap;
          const naive = users.get(one.user)!;
          const userId = one.user;
          switch (one.kind) {
            case 'ask': {
              const requestId = `r${i}`;
              const { cost } = one;
              const isGranted = naive.takes(cost, harness.nowMillis);
              const isDenied = harness.machine.quickDenial({ userId, ruleId: 'r', cost }, harness.nowMillis);
              const { allowed } = harness.one({ userId, ruleId: 'r', cost, requestId });
              reported.push([allowed, isDenied === undefined]);
              expected.push([isGranted, isGranted]);
              if (!isGranted) break;
              naive.grants.push({ atMillis: harness.nowMillis, requestId, cost });
              naive.ids.push(requestId);
              break;
            }
            case 'refund': {
              const requestId = naive.ids.at(-1 - one.back) ?? 'none';
              harness.one({ ask: 'refund', userId, requestId });
              for (const grant of naive.grants) if (grant.requestId === requestId) grant.cost = 0;
              break;
            }
            case 'limit':
              harness.say(userId, { type: 'put', overrides: [{ ruleId: 'r', limit: one.limit }] });
              naive.limit = one.limit;
              break;
            case 'delete':
              harness.say(userId, { type: 'delete' });
              naive.limit = LIMIT;
              naive.isBlocked = false;
              break;
            case 'reset':
              harness.say(userId, { type: 'reset' });
              naive.grants = [];
              break;
            case 'block':
            case 'unblock':
              harness.say(userId, { type: 'block', isBlocked: one.kind === 'block' });
              naive.isBlocked = one.kind === 'block';
              break;
            case 'snapshot':
              restoreInto(harness.machine, snapshotOf(harness.machine));
          }
        }
        expect(reported).toEqual(expected);
      }),
      { seed: 5, numRuns: 150 * ROUNDS },
    );
  });
});
