/** Requests under several limits: either all grant it, or none is charged. */
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import { statedRuleId } from '../../src/api/stated-rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { requestsOf } from '../../src/limiter/log/batch.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { STATED_WINDOWS_PER_KEY_MAX } from '../../src/limiter/rules.ts';
import { entryOf, Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';

/** Two per second, three per minute, and five per second for all users of an address. */
const RULES = [
  { id: 'second', limit: 2, windowMillis: 1_000 },
  { id: 'minute', limit: 3, windowMillis: 60_000 },
  { id: 'address', limit: 5, windowMillis: 1_000 },
];

function joint(more: Partial<AllowRequest> = {}): AllowRequest {
  return {
    userId: 'ada',
    ruleId: 'second',
    askedDigest: 7,
    further: [
      { userId: 'ada', ruleId: 'minute' },
      { userId: '10.0.0.1', ruleId: 'address', cost: 2 },
    ],
    ...more,
  };
}

/** A request under the first limit and one of each of these rules. */
function underRules(...ruleIds: string[]): AllowRequest {
  return joint({ further: ruleIds.map((ruleId, i) => ({ userId: `user${i}`, ruleId })) });
}

function harness(): Harness {
  const made = new Harness();
  made.rules(tableOf(1, RULES, { requestIdHorizonMillis: 10_000 }));
  return made;
}

function remaining({ limits = [] }: Decision): number[] {
  return limits.map((limit) => limit.remaining);
}

/** How much each limit has left. */
function left(machine: Harness): number[] {
  const of = (userId: string, ruleId: string): number | undefined =>
    machine.machine.peek({ ask: 'peek', userId, ruleId }, machine.nowMillis)?.limits[0]?.remaining;
  return [of('ada', 'second'), of('ada', 'minute'), of('10.0.0.1', 'address')].map((one) => one ?? NaN);
}

describe('a request under several limits', () => {
  it('is charged to each of them, and reports the one with least remaining', () => {
    const limiter = harness();
    const decision = limiter.one(joint());
    expect(decision).toMatchObject({ allowed: true, ruleId: 'second', limit: 2, remaining: 1 });
    expect(decision.limits).toMatchObject([
      { ruleId: 'second', limit: 2, windowMillis: 1_000, remaining: 1 },
      { ruleId: 'minute', limit: 3, windowMillis: 60_000, remaining: 2 },
      { ruleId: 'address', limit: 5, windowMillis: 1_000, remaining: 3 },
    ]);
    expect(left(limiter)).toEqual([1, 2, 3]);
  });

  it('waits for the slowest of its limits, also if it reports another one', () => {
    const limiter = new Harness();
    const queue = {
      id: 'queue',
      meter: 'leakyBucket',
      limit: 10,
      windowMillis: 1_000,
      burst: 1,
      queue: 10,
    } as const;
    limiter.rules(tableOf(1, [queue, { id: 'second', limit: 4, windowMillis: 1_000 }]));
    const further = [{ userId: 'ada', ruleId: 'queue', cost: 5 }];
    const decision = limiter.one({ userId: 'ada', ruleId: 'second', cost: 3, askedDigest: 7, further });
    const { waitMillis } = limiter.one({ userId: 'bob', ruleId: 'queue', cost: 5 });
    expect(waitMillis).toBeGreaterThan(0);
    expect(decision).toMatchObject({ allowed: true, ruleId: 'second', remaining: 1, waitMillis });
  });

  it('is charged to no limit if one of them denies it', () => {
    const limiter = harness();
    limiter.one({ userId: '10.0.0.1', ruleId: 'address', cost: 4 });
    const decision = limiter.one(joint());
    expect(decision).toMatchObject({ allowed: false, ruleId: 'address', limit: 5, remaining: 1 });
    expect(remaining(decision)).toEqual([2, 3, 1]);
    expect(left(limiter)).toEqual([2, 3, 1]);
    expect(decision.limits?.map(({ retryAfterMillis }) => retryAfterMillis > 0)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('is denied by the limit with the longest wait', () => {
    const limiter = harness();
    limiter.ask(joint(), joint());
    limiter.nowMillis += 2_000;
    limiter.one(joint());
    limiter.one({ userId: '10.0.0.1', ruleId: 'address', cost: 2 });
    const decision = limiter.one(joint());
    expect(decision).toMatchObject({ allowed: false, ruleId: 'minute', retryAfterMillis: 58_001 });
  });

  it('counts with the other requests of its entry, in their order', () => {
    const limiter = harness();
    const decisions = limiter.ask({ userId: 'ada', ruleId: 'second' }, joint(), { userId: 'bob' }, joint(), {
      userId: 'ada',
      ruleId: 'minute',
    });
    expect(Object.keys(decisions)).toEqual(['0', '1', '4', '5', '8']);
    expect(decisions.filter(Boolean).map(({ allowed }) => allowed)).toEqual([true, true, true, false, true]);
    expect(decisions[1]?.decided.position).toBe(1);
    expect(decisions[8]?.decided.position).toBe(8);
  });

  it('is refused as a whole by an unknown rule', () => {
    const limiter = harness();
    const further = [
      { userId: 'ada', ruleId: 'minute' },
      { userId: 'ada', ruleId: 'gone' },
    ];
    expect(limiter.one(joint({ further }))).toMatchObject({ refusal: 'unknown_rule', ruleId: 'gone' });
    expect(left(limiter)).toEqual([2, 3, 5]);
  });

  it('is granted under no limit if the state has memory for only some of them', () => {
    const limiter = new Harness();
    const capacity = tableOf(1, RULES, { partitionBytesMax: 4_096 });
    limiter.rules(capacity);
    const bytes = [limiter.machine.stateBytes];
    const decisions = Array.from({ length: 60 }, (_, i) => {
      const decision = limiter.one(
        joint({
          userId: `user${i}`,
          further: [
            { userId: `user${i}`, ruleId: 'minute' },
            { userId: `net${i}`, ruleId: 'address' },
          ],
        }),
      );
      bytes.push(limiter.machine.stateBytes);
      return decision;
    });
    const granted = decisions.filter(({ allowed }) => allowed);
    const refused = decisions.filter(({ refusal }) => refusal === 'at_capacity');
    expect(granted.length).toBeGreaterThan(5);
    expect(refused).toHaveLength(60 - granted.length);
    // A refused request was not charged.
    expect(new Set(bytes).size).toBe(granted.length + 1);
    expect(Math.max(...bytes)).toBeLessThanOrEqual(4_096);
  });

  it('states no more rules than its key has room for, but one rule any number of times', () => {
    const limiter = harness();
    const [one, other] = [statedRuleId(300, 60_000), statedRuleId(400, 60_000)];
    limiter.one({ userId: 'user0', ruleId: one });
    for (let i = 1; i < STATED_WINDOWS_PER_KEY_MAX; i += 1)
      limiter.one({ userId: 'user0', ruleId: statedRuleId(i, 60_000) });
    expect(limiter.machine.quickDenial(underRules(other, one), limiter.nowMillis)?.refusal).toBe(
      'at_capacity',
    );
    expect(limiter.one(underRules(other, one))).toMatchObject({ allowed: false, refusal: 'at_capacity' });
    expect(limiter.one(underRules(one, other))).toMatchObject({ allowed: true });
    expect(limiter.one(underRules(other))).toMatchObject({ allowed: false, refusal: 'at_capacity' });
  });

  it('has the same quick denial as in the log', () => {
    const limiter = harness();
    limiter.ask(joint(), joint());
    const now = limiter.nowMillis;
    const { decided: _, ...atOnce } = limiter.machine.quickDenial(joint(), now)!;
    const { decided: __, ...logged } = limiter.one(joint());
    expect(atOnce).toEqual(logged);
    expect(limiter.machine.quickDenial(joint({ userId: 'bob', further: [] }), now)).toBeUndefined();
  });

  it('is inadmissible if any of its limits could never grant it', () => {
    const limiter = harness();
    const bound = { maxAheadMillis: 0, nowMillis: () => limiter.nowMillis };
    const further = [{ userId: '10.0.0.1', ruleId: 'address', cost: 6 }];
    expect(limiter.machine.inadmissible(joint({ further }), bound)).toMatchObject({ field: 'cost' });
    expect(limiter.machine.inadmissible(joint(), bound)).toBeUndefined();
  });
});

describe('a request under several limits, with an id', () => {
  it('is answered the same again even if its rules have changed', () => {
    const limiter = harness();
    const first = limiter.one(joint({ requestId: 'r1' }));
    expect(limiter.one(joint({ requestId: 'r1' }))).toEqual(first);
    expect(limiter.machine.isRemembered(joint({ requestId: 'r1' }))).toBe(true);
    const other = { userId: 'ada', ruleId: 'second', askedDigest: 7, requestId: 'r1' };
    expect(limiter.one(other)).toEqual(first);
    expect(left(limiter)).toEqual([1, 2, 3]);
  });

  it('is a different request if something else was asked', () => {
    const limiter = harness();
    limiter.one(joint({ requestId: 'r1' }));
    const conflict = { field: 'descriptors', first: undefined };
    const reused = { refusal: 'request_id_reused', conflict };
    expect(limiter.one(joint({ requestId: 'r1', askedDigest: 8 }))).toMatchObject(reused);
    expect(limiter.one({ userId: 'ada', ruleId: 'second', requestId: 'r1' })).toMatchObject(reused);
    limiter.one({ userId: 'ada', ruleId: 'second', requestId: 'r2' });
    expect(limiter.one(joint({ requestId: 'r2' }))).toMatchObject(reused);
  });

  it('is refunded under all its limits, once', () => {
    const limiter = harness();
    limiter.one(joint({ requestId: 'r1' }));
    limiter.one(joint({ requestId: 'r2', askedDigest: 8 }));
    expect(left(limiter)).toEqual([0, 1, 1]);
    const refund = { ask: 'refund', userId: 'ada', requestId: 'r1' } as const;
    expect(limiter.one(refund).refund).toEqual({ refunded: true, cost: 1 });
    expect(left(limiter)).toEqual([1, 2, 3]);
    expect(limiter.one(refund).refund).toEqual({ refunded: true, cost: 1 });
    expect(left(limiter)).toEqual([1, 2, 3]);
    expect(limiter.one(joint({ requestId: 'r1' }))).toMatchObject({ refusal: 'refunded' });
  });

  it('remembers its first attempt and reports it when refunded, also from a snapshot', () => {
    const limiter = harness();
    const attempt = Number.MAX_SAFE_INTEGER;
    limiter.one(joint({ requestId: 'r1', attempt }));
    expect(limiter.one(joint({ requestId: 'r1', attempt: 7 }))).toMatchObject({ allowed: true });
    limiter.one({ userId: 'eve', ruleId: 'second', requestId: 'r2' });
    restoreInto(limiter.machine, snapshotOf(limiter.machine));
    for (let i = 0; i < 2; i += 1) {
      const refund = { ask: 'refund', userId: 'ada', requestId: 'r1' } as const;
      expect(limiter.one(refund).refund).toEqual({ refunded: true, cost: 1, attempt });
    }
    const other = { ask: 'refund', userId: 'eve', requestId: 'r2' } as const;
    expect(limiter.one(other).refund).toEqual({ refunded: true, cost: 1 });
  });

  it('reports the same limit when refunded as when granted: the one with the least remaining', () => {
    const limiter = harness();
    const further = [{ userId: '10.0.0.1', ruleId: 'address', cost: 5 }];
    const { ruleId, decided } = limiter.one(joint({ requestId: 'r1', further }));
    expect([ruleId, decided.position]).toEqual(['address', 1]);
    const refund = { ask: 'refund', userId: 'ada', requestId: 'r1' } as const;
    const reported = { ruleId, decided, refund: { refunded: true, cost: 5 } };
    expect(limiter.one(refund)).toMatchObject(reported);
    expect(limiter.one(refund)).toMatchObject(reported);
    expect(left(limiter)).toEqual([2, 3, 5]);
  });

  it('is forgotten as a whole when its horizon is over', () => {
    const limiter = harness();
    limiter.one(joint({ requestId: 'r1' }));
    expect(limiter.machine.stats().requestIds).toBe(3);
    limiter.nowMillis += 10_001;
    limiter.ask({ userId: 'bob' }, { userId: 'bob' });
    expect(limiter.machine.stats().requestIds).toBe(0);
    expect(limiter.one(joint({ requestId: 'r1' })).allowed).toBe(true);
  });

  it('survives a snapshot, even one taken after its first limit was forgotten', () => {
    const limiter = harness();
    limiter.one(joint({ requestId: 'r1' }));
    const copy = new Harness();
    restoreInto(copy.machine, snapshotOf(limiter.machine));
    expect(copy.machine.hash()).toBe(limiter.machine.hash());
    expect(copy.machine.isRemembered(joint({ requestId: 'r1' }))).toBe(true);
    limiter.nowMillis += 10_001;
    // The grant makes the log forget two of the three.
    limiter.one({ userId: 'bob' });
    expect(limiter.machine.stats().requestIds).toBe(1);
    restoreInto(copy.machine, snapshotOf(limiter.machine));
    expect(copy.machine.hash()).toBe(limiter.machine.hash());
    expect(copy.machine.stats()).toEqual(limiter.machine.stats());
  });
});

describe('the entry of requests under several limits', () => {
  it('decodes to the same requests', () => {
    const requests = [
      { userId: 'bob' },
      joint({ requestId: 'r1', timestampMillis: 5 }),
      joint({ cost: 2, further: undefined }),
      { ask: 'refund', userId: 'ada', requestId: 'r1' } as const,
    ];
    const command = decodeCommand(entryOf(requests));
    const { batch } = command as Extract<typeof command, { type: 'allow' }>;
    expect(batch.size).toBe(6);
    expect(requestsOf(batch)).toEqual(requests);
  });

  it.each([
    ['a limit twice', [{ userId: 'ada', ruleId: 'second' }], /different/],
    ['a limit of no rule', [{ userId: 'ada', ruleId: '' }], /texts are not empty/],
    ['too many', Array.from({ length: 16 }, (_, i) => ({ userId: `u${i}`, ruleId: 'minute' })), /at most 16/],
  ])('refuses %s', (_, further, message) => {
    expect(() => decodeCommand(entryOf([joint({ further })]))).toThrow(message);
  });

  it('is added completely, or the batch is unchanged', () => {
    const further = [{ userId: 'ada', ruleId: 'minute', cost: 0 }];
    expect(() => entryOf([joint({ further })])).toThrow(/cost is 0/);
  });
});
