/** Random histories on several replicas: they agree with each other, with a naive model and across snapshots. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHUNK_BYTES_MAX, InvalidSnapshotError } from '../../src/limiter/state/snapshot-bytes.ts';
import type { Decision } from '../../src/limiter/decision.ts';
import { RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import { effectiveWindowMillis } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { decodeCommand } from '../../src/limiter/log/command.ts';
import { entryOf, Harness, harnessWith, restoreInto, snapshotOf, START, tableOf } from './harness.ts';
import { densestWindow, NaiveLog } from './naive.ts';
import type { Receipt } from '../../src/api/answer.ts';
import type { Rule } from '../../src/api/rule.ts';
import { ROUNDS } from '../raft/seeded.ts';

const rules: Partial<Rule>[] = [
  { id: 'r', limit: 4, windowMillis: 300, clock: 'request' },
  { id: 'c', limit: 3, windowMillis: 500, clock: 'cluster' },
];

interface Ask {
  readonly request: AllowRequest;
  readonly lag: number | undefined;
}
interface Step {
  readonly gap: number;
  readonly asks: readonly Ask[];
  readonly limits: readonly [number, number] | undefined;
}

const ask: fc.Arbitrary<Ask> = fc.record({
  request: fc.record(
    {
      userId: fc.constantFrom('ada', 'bob', 'eve', 'dan', 'ÿ', 'x'),
      ruleId: fc.constantFrom('r', 'c'),
      cost: fc.integer({ min: 1, max: 5 }),
      requestId: fc.constantFrom('1', '2', '3'),
    },
    { requiredKeys: ['userId'] },
  ),
  lag: fc.option(fc.oneof(fc.integer({ min: -300, max: 600 }), fc.constant(59_000)), { nil: undefined }),
});
const step: fc.Arbitrary<Step> = fc.record({
  gap: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 5 }), fc.constant(130_000)),
  asks: fc.array(ask, { minLength: 1, maxLength: 8 }),
  limits: fc.oneof(
    { weight: 15, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 6 })) },
  ),
});
const history = fc.array(step, { minLength: 1, maxLength: 60 });

/** Applies one step and returns the requests with their decisions. */
function play(harness: Harness, { gap, asks, limits }: Step): [AllowRequest, Decision][] {
  harness.nowMillis += gap;
  if (limits !== undefined) {
    const version = (harness.machine.ruleTable?.version ?? 0) + 1;
    harness.rules(
      tableOf(version, [
        { ...rules[0], limit: limits[0] },
        { ...rules[1], limit: limits[1] },
      ]),
    );
  }
  const requests = asks.map(({ request, lag }) =>
    lag === undefined ? request : { ...request, timestampMillis: harness.nowMillis - lag },
  );
  const decisions = harness.ask(...requests);
  return requests.map((request, i) => [request, decisions[i]!]);
}

/** The fields of a decision that no limit judged. */
const NOT_JUDGED = { limit: 0, windowMillis: 0, remaining: 0, retryAfterMillis: 0, resetMillis: 0 };

/** The refusal of a request whose id belongs to a different request. */
function conflictOf(
  first: AllowRequest,
  other: AllowRequest,
  ruleId: string,
  { rulesVersion, ...decided }: Receipt & { readonly rulesVersion: number },
): Decision | undefined {
  const differs = (['ruleId', 'cost', 'timestampMillis'] as const).find((field) => {
    const absent = field === 'cost' ? 1 : undefined;
    return (first[field] ?? absent) !== (other[field] ?? absent);
  });
  if (differs === undefined) return undefined;
  return {
    allowed: false,
    ruleId,
    ...NOT_JUDGED,
    decided,
    rulesVersion,
    refusal: 'request_id_reused',
    conflict: {
      field: differs === 'ruleId' ? 'rule' : differs,
      first: first[differs] ?? (differs === 'cost' ? 1 : undefined),
    },
  };
}

/** A naive state machine that never forgets anything. */
class Model {
  rulesVersion = 0;
  readonly logs = new Map<string, NaiveLog>();
  readonly answers = new Map<string, { request: AllowRequest; decision: Decision; until: number }>();

  decide(request: AllowRequest, rule: Rule, now: number, receipt: Omit<Receipt, 'timeMillis'>): Decision {
    const key = JSON.stringify([rule.id, request.userId]);
    const retryKey = JSON.stringify([request.userId, request.requestId]);
    const known = this.answers.get(retryKey);
    if (request.requestId !== undefined && known !== undefined && known.until >= now) {
      const { rulesVersion } = this;
      const place = { ...receipt, timeMillis: now, rulesVersion };
      return conflictOf(known.request, request, rule.id, place) ?? known.decision;
    }
    const log = this.logs.get(key) ?? new NaiveLog();
    this.logs.set(key, log);
    const isEvent = rule.clock === 'request' && request.timestampMillis !== undefined;
    const asked = isEvent ? request.timestampMillis : now;
    const window = isEvent ? rule.windowMillis : effectiveWindowMillis(rule, 0);
    const t = Math.max(asked, log.newest);
    const cost = request.cost ?? 1;
    // Group time must not be replaced by timestamps that are ahead of it.
    const isHeld = !isEvent && t > asked;
    const allowed = !isHeld && log.ask(t, cost, rule.limit, window, Infinity);
    const wait = log.wait(t, allowed ? 1 : cost, rule.limit, window);
    const empty = log.empty(t, window);
    const decision: Decision = {
      allowed,
      ruleId: rule.id,
      limit: rule.limit,
      windowMillis: rule.windowMillis,
      remaining: isHeld ? 0 : Math.max(0, rule.limit - log.live(t, window)),
      retryAfterMillis: wait === Infinity ? rule.windowMillis : wait === 0 && !isHeld ? 0 : wait + t - asked,
      resetMillis: empty === 0 && !isHeld ? 0 : empty + t - asked,
      decided: { ...receipt, timeMillis: t },
      rulesVersion: this.rulesVersion,
    };
    if (allowed && request.requestId !== undefined) {
      this.answers.set(retryKey, { request, decision, until: now + 120_000 });
    }
    return decision;
  }
}

describe('the state machine', () => {
  it('decides exactly as a model that never forgets, while callers are less than a minute late', () => {
    fc.assert(
      fc.property(history, (steps) => {
        const harness = harnessWith(...rules);
        const model = new Model();
        // From the first timestamp on, keys are kept a minute longer.
        harness.allows('first', START);
        for (const each of steps) {
          const played = play(harness, each);
          const { term, index } = harness.machine.applied;
          let position = 0;
          model.rulesVersion = harness.machine.ruleTable!.version;
          for (const [request, decision] of played) {
            const rule = harness.machine.ruleTable!.rules[request.ruleId === 'c' ? 1 : 0]!;
            const receipt = { term, index, position: position++ };
            expect(decision).toEqual(model.decide(request, rule, harness.nowMillis, receipt));
          }
        }
      }),
      { numRuns: 150 * ROUNDS },
    );
  });

  it('never grants more than the limit in a window, for any late or early timestamps', () => {
    const lags = fc.array(
      fc.record({
        gap: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.constant(70_000)),
        lag: fc.integer({ min: -1_000, max: 200_000 }),
        user: fc.constantFrom('a', 'b', 'c', 'd'),
        hasTimestamp: fc.boolean(),
      }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(lags, (asks) => {
        const harness = harnessWith({ limit: 2, windowMillis: 50_000 });
        const grants = new Map<string, { t: number; cost: number }[]>();
        for (const { gap, lag, user, hasTimestamp } of asks) {
          harness.nowMillis += gap;
          const timestampMillis = hasTimestamp ? harness.nowMillis - lag : undefined;
          const decision = harness.one({ userId: user, timestampMillis });
          if (!decision.allowed) continue;
          const list = grants.get(user) ?? [];
          grants.set(user, [...list, { t: decision.decided.timeMillis, cost: 1 }]);
        }
        for (const list of grants.values()) expect(densestWindow(list, 50_000)).toBeLessThanOrEqual(2);
      }),
      { numRuns: 75 * ROUNDS },
    );
  });

  it('decides as the library does on the same timestamps', () => {
    const asks = fc.array(fc.tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 2_000 })), {
      maxLength: 80,
    });
    fc.assert(
      fc.property(asks, fc.integer({ min: 1, max: 4 }), (requests, limit) => {
        const harness = harnessWith({ limit, windowMillis: 400 });
        const library = new RateLimiter(limit, 400);
        for (const [userId, offset] of requests) {
          expect(harness.allows(userId, START + offset)).toBe(library.allow(userId, START + offset));
        }
      }),
    );
  });
});

describe('replicas', () => {
  it('agree on state and decisions, one of them restored from a snapshot half way', () => {
    fc.assert(
      fc.property(history, fc.nat(), (steps, at) => {
        const leader = harnessWith(...rules);
        const restored = new Harness();
        const half = at % steps.length;
        for (const each of steps.slice(0, half)) play(leader, each);
        restoreInto(restored.machine, snapshotOf(leader.machine));
        restored.index = leader.index;
        restored.nowMillis = leader.nowMillis;
        expect(restored.machine.applied).toEqual(leader.machine.applied);
        expect(restored.machine.hash()).toBe(leader.machine.hash());
        for (const each of steps.slice(half)) {
          expect(play(restored, each)).toEqual(play(leader, each));
          expect(restored.machine.hash()).toBe(leader.machine.hash());
        }
        expect(snapshotOf(restored.machine)).toEqual(snapshotOf(leader.machine));
      }),
      { numRuns: 75 * ROUNDS },
    );
  });

  it('agree if one of them does not return decisions', () => {
    const leader = harnessWith({ limit: 2 });
    const follower = harnessWith({ limit: 2 });
    for (let i = 0; i < 300; i += 1) {
      leader.nowMillis += 37;
      const command = decodeCommand(entryOf([{ userId: `u${i % 7}`, requestId: `q${i % 50}` }]));
      const position = leader.next();
      leader.machine.apply(command, position, () => undefined);
      follower.machine.apply(command, position);
    }
    expect(follower.machine.hash()).toBe(leader.machine.hash());
  });

  it('differ in hash when they differ in one grant', () => {
    const one = harnessWith({ limit: 2 });
    const other = harnessWith({ limit: 2 });
    expect(one.machine.hash()).toBe(other.machine.hash());
    one.one({ userId: 'ada' });
    expect(one.machine.hash()).not.toBe(other.machine.hash());
    other.one({ userId: 'ada' });
    expect(one.machine.hash()).toBe(other.machine.hash());
  });
});

function filled(keys: number): Harness {
  const harness = harnessWith({ limit: 100, windowMillis: 1_000_000 });
  harness.allows('far', 5);
  for (let i = 0; i < keys; i += 1) {
    harness.nowMillis += 1;
    harness.one({ userId: `${'x'.repeat(60)}${i}`, cost: 1 + (i % 50), requestId: `q${i}` });
  }
  return harness;
}

describe('a snapshot', () => {
  it('is cut into chunks of bounded size, and can be restored', () => {
    const harness = filled(4_000);
    const chunks = snapshotOf(harness.machine);
    expect(chunks.length).toBeGreaterThan(3);
    for (const chunk of chunks) expect(chunk.length).toBeLessThanOrEqual(CHUNK_BYTES_MAX);
    const restored = new LimiterStateMachine();
    restoreInto(restored, chunks);
    expect(restored.hash()).toBe(harness.machine.hash());
    expect(snapshotOf(restored).map(String).join() === chunks.map(String).join()).toBe(true);
    expect(restored.stats()).toEqual(harness.machine.stats());
    expect(restored.ruleTable).toEqual(harness.machine.ruleTable);
  });

  it('of an empty machine restores to an empty machine', () => {
    const restored = new LimiterStateMachine();
    restoreInto(restored, snapshotOf(new LimiterStateMachine()));
    expect(restored.hash()).toBe(new LimiterStateMachine().hash());
  });

  it('that is damaged anywhere is refused, and the state does not change', () => {
    const chunks = snapshotOf(filled(3).machine);
    const target = filled(2);
    const before = target.machine.hash();
    const refused = (damaged: Uint8Array[]): void => {
      expect(() => restoreInto(target.machine, damaged)).toThrow(InvalidSnapshotError);
      expect(target.machine.hash()).toBe(before);
    };
    refused([]);
    refused(chunks.slice(1));
    refused(chunks.slice(0, -1));
    refused([chunks[1]!, chunks[0]!, ...chunks.slice(2)]);
    refused([new Uint8Array(0), ...chunks]);
    chunks.forEach((chunk, c) => {
      for (let i = 0; i < chunk.length; i += 1) {
        const damaged = chunk.slice();
        damaged[i]! ^= 1 << (i % 8);
        refused(chunks.map((each, at) => (at === c ? damaged : each)));
      }
    });
  });
});
