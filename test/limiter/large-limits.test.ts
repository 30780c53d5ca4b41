/**
 * Fixed windows with limits in the billions: counted exactly, kept in snapshots, and without effect on other meters.
 */
import { describe, expect, it } from 'vitest';
import { COST_MAX } from '../../src/api/request.ts';
import { FIXED_LIMIT_MAX, LIMIT_MAX, type Rule, type RuleMeter } from '../../src/api/rule.ts';
import { InvalidRuleError, validateRule } from '../../src/limiter/rules.ts';
import { Harness, restoreInto, snapshotOf, tableOf } from './harness.ts';

const DAY_MILLIS = 86_400_000;
const LARGE: Rule = {
  id: 'r',
  limit: FIXED_LIMIT_MAX,
  windowMillis: DAY_MILLIS,
  clock: 'cluster',
  meter: 'fixedWindow',
};

/** A key with `limit - left` granted. */
function spent(rule: Rule, left: number): Harness {
  const harness = new Harness();
  harness.rules(tableOf(1, [rule]));
  for (let wanted = rule.limit - left; wanted > 0; wanted -= COST_MAX)
    harness.one({ userId: 'ada', cost: Math.min(wanted, COST_MAX) });
  return harness;
}

describe('a limit in the billions', () => {
  it('can be granted to the last unit, and is reported', () => {
    const harness = spent(LARGE, 2);
    const reported = [1, 2, 3].map((i) => harness.one({ userId: 'ada', requestId: `q${i}` }));
    expect(reported.map(({ allowed, limit, remaining }) => [allowed, limit, remaining])).toEqual([
      [true, FIXED_LIMIT_MAX, 1],
      [true, FIXED_LIMIT_MAX, 0],
      [false, FIXED_LIMIT_MAX, 0],
    ]);
  });

  it('survives a snapshot, as do its remembered answers', () => {
    const harness = spent(LARGE, 10);
    const granted = harness.one({ userId: 'ada', requestId: 'q' });
    const hash = harness.machine.hash();
    restoreInto(harness.machine, snapshotOf(harness.machine));
    expect(harness.machine.hash()).toBe(hash);
    expect(harness.one({ userId: 'ada', requestId: 'q' }).remaining).toBe(granted.remaining);
    expect(harness.one({ userId: 'ada', cost: 10 }).allowed).toBe(false);
  });

  it.each(['slidingLog', 'slidingCounter', 'tokenBucket', 'leakyBucket'] as const)(
    "is refused for a %s, which counts a key's earlier grants until their window is over",
    (meter: RuleMeter) => {
      expect(() => validateRule({ ...LARGE, meter, limit: LIMIT_MAX + 1 }, 'rule')).toThrow(InvalidRuleError);
      const harness = spent(LARGE, 0);
      harness.rules(tableOf(2, [{ ...LARGE, limit: LIMIT_MAX, meter }]));
      expect(harness.allows('ada')).toBe(false);
      restoreInto(harness.machine, snapshotOf(harness.machine));
      expect(harness.allows('ada')).toBe(false);
      harness.nowMillis += 2 * DAY_MILLIS;
      expect(harness.allows('ada')).toBe(true);
    },
  );

  it.each(['slidingLog', 'slidingCounter', 'tokenBucket', 'leakyBucket', 'fixedWindow'] as const)(
    'fills a new window with the meter %s, and survives a snapshot',
    (meter: RuleMeter) => {
      const harness = new Harness();
      const hour = { windowMillis: 3_600_000, clock: 'cluster', of: 'r' } as const;
      const day: Rule = { ...LARGE, id: 'r/day', of: 'r' };
      harness.rules(tableOf(1, [day]));
      for (let i = 0; i < 2; i += 1) harness.one({ userId: 'ada', cost: COST_MAX, ruleId: 'r/day' });
      harness.rules(tableOf(2, [{ ...hour, id: 'r/hour', limit: LIMIT_MAX, meter }, day]));
      expect(harness.one({ userId: 'ada', ruleId: 'r/hour' }).allowed).toBe(false);
      harness.nowMillis += DAY_MILLIS;
      expect(harness.one({ userId: 'ada', ruleId: 'r/hour' }).allowed).toBe(true);
      const hash = harness.machine.hash();
      restoreInto(harness.machine, snapshotOf(harness.machine));
      expect(harness.machine.hash()).toBe(hash);
    },
  );
});

describe('a caller whose timestamps run ahead, under a large limit and a short window', () => {
  const SHORT: Rule = { id: 'r', limit: LIMIT_MAX, windowMillis: 1, clock: 'request' };
  /** As many grants as a log can add up. It keeps them all for refunds until group time has passed them. */
  const GRANTS = 4_294;

  function ahead(): Harness {
    const harness = new Harness();
    harness.rules(tableOf(1, [SHORT]));
    for (let i = 1; i <= GRANTS; i += 1)
      harness.one({ userId: 'ada', cost: COST_MAX, timestampMillis: harness.nowMillis + i });
    return harness;
  }

  it('is refused a cost that would overflow the sum of its log, and no node stops', () => {
    const harness = ahead();
    const timestampMillis = harness.nowMillis + GRANTS + 1;
    const request = { userId: 'ada', cost: COST_MAX, timestampMillis };
    expect(harness.one(request)).toMatchObject({ allowed: false, refusal: 'at_capacity' });
    expect(harness.machine.quickDenial(request, harness.nowMillis)).toMatchObject({ refusal: 'at_capacity' });
    expect(harness.one({ ...request, cost: 1 }).allowed).toBe(true);
  });

  it('is granted again when group time has caught up', () => {
    const harness = ahead();
    harness.nowMillis += GRANTS + 100;
    const timestampMillis = harness.nowMillis + 1;
    expect(harness.one({ userId: 'ada', cost: COST_MAX, timestampMillis }).allowed).toBe(true);
  });

  it('is refused that cost also in a new window that inherits the grants', () => {
    const harness = ahead();
    const rest = 2 ** 32 - 1 - GRANTS * COST_MAX;
    harness.one({ userId: 'ada', cost: rest, timestampMillis: harness.nowMillis + GRANTS + 1 });
    harness.rules(tableOf(2, [SHORT, { ...SHORT, id: 'r/new', of: 'r', windowMillis: 2 }]));
    const timestampMillis = harness.nowMillis + GRANTS + 2;
    const request = { userId: 'ada', ruleId: 'r/new', timestampMillis };
    expect(harness.one(request)).toMatchObject({ allowed: false, refusal: 'at_capacity' });
  });
});
