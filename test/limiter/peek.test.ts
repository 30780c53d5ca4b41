/** A peek reports the limits as a request of cost 1 would find them, and changes nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { statedRuleId } from '../../src/api/stated-rule.ts';
import { Harness, harnessWith, START, tableOf } from './harness.ts';

describe('a peek', () => {
  it('reports for every rule of the table, in order, the spent cost and the wait', () => {
    const harness = harnessWith({ clock: 'cluster' }, { limit: 1, windowMillis: 5_000 }, { limit: 0 });
    harness.ask({ userId: 'ada', cost: 2 }, { userId: 'ada', ruleId: 'rule1' });
    harness.nowMillis += 10;
    const { index, term } = harness.machine.applied;
    expect(harness.machine.peek({ ask: 'peek', userId: 'ada' }, START + 10)).toEqual({
      limits: [
        {
          ruleId: 'rule0',
          limit: 3,
          windowMillis: 1_000,
          remaining: 1,
          retryAfterMillis: 0,
          resetMillis: 991,
        },
        {
          ruleId: 'rule1',
          limit: 1,
          windowMillis: 5_000,
          remaining: 0,
          retryAfterMillis: 4_991,
          resetMillis: 4_991,
        },
        // No cost ever fits.
        {
          ruleId: 'rule2',
          limit: 0,
          windowMillis: 1_000,
          remaining: 0,
          retryAfterMillis: 1_000,
          resetMillis: 0,
        },
      ],
      decided: { term, index, timeMillis: START + 10 },
      rulesVersion: 1,
    });
  });

  it('reports that an unknown user has everything left', () => {
    const harness = harnessWith({});
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'bob', ruleId: 'rule0' }, START);
    expect(keyStatus?.limits).toMatchObject([{ remaining: 3, retryAfterMillis: 0, resetMillis: 0 }]);
  });

  it('reports a stated rule, and keeps no keys for it', () => {
    const harness = harnessWith({});
    const ruleId = statedRuleId(5, 100);
    const before = [...harness.machine.inspect()];
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId }, START);
    expect(keyStatus?.limits).toMatchObject([{ ruleId, limit: 5, windowMillis: 100, remaining: 5 }]);
    expect([...harness.machine.inspect()]).toEqual(before);
  });

  it('reports nothing for an unknown rule, or before the first rules', () => {
    const harness = harnessWith({});
    expect(harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'none' }, START)).toBeUndefined();
    harness.rules(tableOf(2, [{ id: 'other' }]));
    expect(harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'rule0' }, START)).toBeUndefined();
    expect(
      new Harness().machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'rule0' }, START),
    ).toBeUndefined();
  });

  it('reports that a user with grants ahead of group time must wait until they are out, as a denial does', () => {
    const harness = harnessWith({});
    harness.allows('ada', START + 700);
    const keyStatus = harness.machine.peek({ ask: 'peek', userId: 'ada', ruleId: 'rule0' }, START);
    expect(keyStatus?.limits).toMatchObject([
      { remaining: 0, retryAfterMillis: 700, resetMillis: 700 + 1_001 },
    ]);
  });

  it('agrees with the answer to a request, after any history, and changes nothing', () => {
    const request = fc.record({
      userId: fc.constantFrom('ada', 'bob'),
      ruleId: fc.constantFrom('rule0', 'rule1', '2/300ms'),
      cost: fc.integer({ min: 1, max: 3 }),
    });
    const step = fc.record({ waitMillis: fc.constantFrom(0, 1, 100, 400, 2_000), request });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const harness = harnessWith({ clock: 'cluster' }, { limit: 5, windowMillis: 300 });
        for (const { waitMillis, request: asked } of steps) {
          harness.nowMillis += waitMillis;
          harness.one(asked);
          const before = harness.machine.hash();
          expectAgreement(harness, { userId: asked.userId, ruleId: asked.ruleId });
          expect(harness.machine.hash()).toBe(before);
        }
      }),
      { seed: 5, numRuns: 200 },
    );
  });
});

function expectAgreement({ machine, nowMillis }: Harness, request: AllowRequest): void {
  const { userId, ruleId } = request;
  const [limit] = machine.peek({ ask: 'peek', userId, ruleId }, nowMillis)?.limits ?? [];
  const denial = machine.quickDenial(request, nowMillis);
  expect([limit?.remaining === 0, limit?.retryAfterMillis !== 0]).toEqual([
    denial !== undefined,
    denial !== undefined,
  ]);
  expect({ ...denial, ...limit }).toEqual({ ...limit, ...denial });
  expect(denial?.decided.timeMillis ?? nowMillis).toBe(nowMillis);
}
