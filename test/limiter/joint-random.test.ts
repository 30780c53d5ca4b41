/**
 * Random requests under several limits of all meters, with refunds, retries and snapshots, compared with plain lists.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AllowRequest } from '../../src/api/request.ts';
import type { Rule } from '../../src/api/rule.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';
import { naiveCapacity, type NaiveDemand, type NaiveMeter, naiveMeterOf } from './naive-meters.ts';
import { ROUNDS } from '../raft/seeded.ts';

const RULES: readonly Partial<Rule>[] = [
  { id: 'log', limit: 4, windowMillis: 100 },
  { id: 'granules', limit: 6, windowMillis: 400, granularityMillis: 50 },
  { id: 'counter', limit: 5, windowMillis: 200, meter: 'slidingCounter' },
  { id: 'fixed', limit: 7, windowMillis: 300, meter: 'fixedWindow' },
  { id: 'bucket', limit: 3, windowMillis: 150, meter: 'tokenBucket', burst: 5 },
];
const KEYS = ['ada', 'bob', 'net'];
const HORIZON_MILLIS = 500;
/** The window in group time: no drift, and whole milliseconds. */
const ROUNDING_MILLIS = 1;

const limit = fc.record({
  userId: fc.constantFrom(...KEYS),
  rule: fc.nat(RULES.length - 1),
  cost: fc.integer({ min: 1, max: 3 }),
});
const step = fc.record({
  limits: fc.uniqueArray(limit, {
    minLength: 1,
    maxLength: 6,
    selector: ({ userId, rule }) => `${rule} ${userId}`,
  }),
  id: fc.option(fc.nat(3), { nil: undefined }),
  waitMillis: fc.constantFrom(0, 0, 0, 1, 20, 60, 130, 600),
  isRestored: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Each limit has a list of its own. A request is granted if it fits all of them. */
class NaiveLimits {
  readonly #rules: readonly Rule[];
  readonly #meters = new Map<string, NaiveMeter>();

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  #of(userId: string, rule: Rule): NaiveMeter {
    const key = `${rule.id} ${userId}`;
    const meter = this.#meters.get(key) ?? naiveMeterOf(rule);
    this.#meters.set(key, meter);
    return meter;
  }

  #demand(rule: Rule, t: number): NaiveDemand {
    const windowMillis = rule.windowMillis + ROUNDING_MILLIS;
    return { rule, t, windowMillis, keptMillis: windowMillis };
  }

  /** The remaining cost of each limit, after the grant if all have room for it. */
  ask(limits: Step['limits'], t: number): { readonly allowed: boolean; readonly remaining: number[] } {
    const all = limits.map(({ userId, rule: place, cost }) => {
      const rule = this.#rules[place]!;
      const meter = this.#of(userId, rule);
      const demand = this.#demand(rule, t);
      return { meter, demand, cost, free: naiveCapacity(rule) - meter.spent(demand) };
    });
    const allowed = all.every(({ free, cost }) => cost <= free);
    if (allowed) for (const { meter, demand, cost } of all) meter.grant(demand, cost);
    return { allowed, remaining: all.map(({ free, cost }) => Math.max(0, allowed ? free - cost : free)) };
  }
}

function requestOf({ limits, id }: Step, rules: readonly Rule[]): AllowRequest {
  const [first, ...further] = limits.map(({ userId, rule, cost }) => {
    return { userId, ruleId: rules[rule]!.id, cost };
  });
  // Different requests need different digests. A retry must repeat the digest of its request.
  const askedDigest = 1 + limits.reduce((sum, { rule, cost }) => sum * 31 + rule * 3 + cost, 0);
  const requestId = id === undefined ? undefined : `r${id}`;
  return { ...first!, further: further.length === 0 ? undefined : further, askedDigest, requestId };
}

/** A limiter next to the lists, and the request id of each grant. */
class Run {
  readonly #limiter = new Harness();
  readonly #rules: readonly Rule[];
  readonly #naive: NaiveLimits;
  readonly #granted = new Map<
    string,
    { readonly digest: number | undefined; readonly decision: Decision; readonly untilMillis: number }
  >();

  constructor() {
    const rules = RULES.map((rule) => ({ ...rule, clock: 'cluster' as const }));
    const table = tableOf(1, rules, { requestIdHorizonMillis: HORIZON_MILLIS });
    this.#limiter.rules(table);
    this.#rules = table.rules;
    this.#naive = new NaiveLimits(table.rules);
  }

  step(one: Step): void {
    const limiter = this.#limiter;
    limiter.nowMillis += one.waitMillis;
    const { nowMillis } = limiter;
    if (one.isRestored) restoreInto(limiter.machine, snapshotOf(limiter.machine));
    const request = requestOf(one, this.#rules);
    const decision = limiter.one(request);
    const { userId, requestId, askedDigest } = request;
    const key = requestId === undefined ? '' : `${userId} ${requestId}`;
    const before = this.#granted.get(key);
    if (before !== undefined && before.untilMillis >= nowMillis) {
      const isSame = before.digest === askedDigest;
      expectSame(isSame ? decision : decision.refusal, isSame ? before.decision : 'request_id_reused');
      return;
    }
    const { allowed, remaining } = this.#naive.ask(one.limits, nowMillis);
    const reported = decision.limits ?? [decision];
    expectSame([decision.allowed, reported.map((limit) => limit.remaining)], [allowed, remaining]);
    if (!allowed || key === '') return;
    this.#granted.set(key, { digest: askedDigest, decision, untilMillis: nowMillis + HORIZON_MILLIS });
  }
}

function expectSame(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected);
}

describe('requests under several limits at random', () => {
  it('are granted if each limit alone would grant them, charged to all limits or none, and once under an id', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const run = new Run();
        for (const one of steps) run.step(one);
      }),
      { seed: 12, numRuns: 150 * ROUNDS },
    );
  });
});
