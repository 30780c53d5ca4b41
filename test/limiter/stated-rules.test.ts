/** Rules that requests state in the rule id. */
import { describe, expect, it } from 'vitest';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../src/api/rule.ts';
import { parseStatedRule, statedRuleId } from '../../src/api/stated-rule.ts';
import { InvalidRuleError, STATED_WINDOWS_PER_KEY_MAX } from '../../src/limiter/rules.ts';
import { LimiterStateMachine } from '../../src/limiter/state-machine.ts';
import { Harness, harnessWith, restoreInto, snapshotOf, tableOf } from './harness.ts';

const RULE = statedRuleId(2, 1_000);

describe('the id of a stated rule', () => {
  it.each([
    [1, 1],
    [100, 60_000],
    [LIMIT_MAX, WINDOW_MILLIS_MAX],
  ])('means %d per %d ms', (limit, windowMillis) => {
    expect(parseStatedRule(statedRuleId(limit, windowMillis))).toEqual({ limit, windowMillis });
  });

  it.each([
    '',
    'default',
    '00/1000ms',
    '1/0ms',
    '01/1000ms',
    '1/1000',
    '1/1000ms ',
    ' 1/1000ms',
    '-1/1000ms',
    '1.5/1000ms',
    `${LIMIT_MAX + 1}/1000ms`,
    `1/${WINDOW_MILLIS_MAX + 1}ms`,
    '99999999999/1000ms',
  ])('is not %j', (id) => {
    expect(parseStatedRule(id)).toBeUndefined();
  });
});

function ask(harness: Harness, userId: string, ruleId = RULE, cost = 1) {
  return harness.one({ userId, ruleId, cost });
}

/** Everything except the sweep position. */
function itemsOf({ machine }: Harness) {
  return [...machine.inspect()].map((item) => ({ ...item, sweepSlot: 0 }));
}

describe('a rule that a request states', () => {
  it('decides as a configured one of the same limit and window', () => {
    const harness = harnessWith({ id: 'named', limit: 2, windowMillis: 1_000, clock: 'cluster' });
    for (const gap of [0, 0, 0, 400, 600, 1, 0, 999, 1, 2_000, 0, 0]) {
      harness.nowMillis += gap;
      const [stated, named] = harness.ask(
        { userId: 'ada', ruleId: RULE },
        { userId: 'ada', ruleId: 'named' },
      );
      const { decided, ruleId, ...rest } = stated!;
      expect(ruleId).toBe(RULE);
      expect({ ...rest, ruleId: 'named', decided: { ...decided, position: 1 } }).toEqual(named);
    }
  });

  it('has a budget for each limit, window and user', () => {
    const harness = harnessWith({});
    expect([1, 2, 3].map(() => ask(harness, 'ada').allowed)).toEqual([true, true, false]);
    expect(ask(harness, 'ada', statedRuleId(3, 1_000)).allowed).toBe(true);
    expect(ask(harness, 'ada', statedRuleId(2, 1_001)).allowed).toBe(true);
    expect(ask(harness, 'bob').allowed).toBe(true);
    expect(ask(harness, 'ada').allowed).toBe(false);
  });

  it('leaves no trace before it has granted something', () => {
    const harness = harnessWith({});
    const before = harness.machine.hash();
    expect(ask(harness, 'ada', RULE, 3).allowed).toBe(false);
    expect(harness.machine.hash()).toBe(before);
    expect(
      harness.machine.quickDenial({ userId: 'ada', ruleId: RULE, cost: 3 }, harness.nowMillis),
    ).toMatchObject({
      allowed: false,
      ruleId: RULE,
    });
    expect(harness.machine.hash()).toBe(before);
  });

  it('is unknown before the cluster has rules, and for a request with a timestamp', () => {
    const harness = new Harness();
    expect(ask(harness, 'ada')).toMatchObject({ allowed: false, refusal: 'unknown_rule' });
    harness.rules(tableOf(1, [{}]));
    const bound = { maxAheadMillis: 0, nowMillis: () => harness.nowMillis };
    const inadmissible = harness.machine.inadmissible(
      { userId: 'ada', ruleId: RULE, timestampMillis: 1 },
      bound,
    );
    expect(inadmissible?.field).toBe('timestampMillis');
  });

  it('keeps its grants when the table changes', () => {
    const harness = harnessWith({});
    expect(ask(harness, 'ada').allowed).toBe(true);
    harness.rules(tableOf(2, [{ limit: 1 }]));
    expect([1, 2].map(() => ask(harness, 'ada').allowed)).toEqual([true, false]);
    harness.rules(tableOf(3, [{}]));
    expect(ask(harness, 'ada').allowed).toBe(false);
  });

  // A forgotten stated rule that accepted callers' timestamps would grant its cost a second time.
  it('has an id that no configured rule may have', () => {
    expect(() => tableOf(2, [{ id: RULE, limit: 2, windowMillis: 1_000 }])).toThrow(InvalidRuleError);
  });

  it('is dropped when its last key is forgotten', () => {
    const harness = harnessWith({ id: 'sweeper', limit: 100, windowMillis: 10 });
    const bare = harnessWith({ id: 'sweeper', limit: 100, windowMillis: 10 });
    ask(harness, 'ada');
    bare.next();
    for (let i = 0; i < 8; i += 1) {
      for (const each of [harness, bare]) {
        each.nowMillis += 1_000;
        each.one({ userId: 'other', ruleId: 'sweeper' });
      }
    }
    expect(itemsOf(harness)).toEqual(itemsOf(bare));
    expect(ask(harness, 'ada').allowed).toBe(true);
  });

  it('is dropped in the middle of an entry and comes back with a later grant of the same entry', () => {
    const harness = harnessWith({ id: 'sweeper', limit: 100, windowMillis: 10 });
    ask(harness, 'ada');
    harness.nowMillis += 10_000;
    const others = Array.from({ length: 20 }, (_, i) => ({ userId: `other-${i}`, ruleId: 'sweeper' }));
    const decisions = harness.ask(...others, { userId: 'ada', ruleId: RULE });
    expect(decisions.at(-1)?.allowed).toBe(true);
    expect([1, 2].map(() => ask(harness, 'ada').allowed)).toEqual([true, false]);
  });

  it('survives a snapshot', () => {
    const harness = harnessWith({});
    ask(harness, 'ada');
    ask(harness, 'ada');
    const machine = new LimiterStateMachine();
    restoreInto(machine, snapshotOf(harness.machine));
    expect(machine.hash()).toBe(harness.machine.hash());
    expect(machine.quickDenial({ userId: 'ada', ruleId: RULE }, harness.nowMillis)).toMatchObject({
      limit: 2,
    });
    expect(machine.quickDenial({ userId: 'bob', ruleId: RULE }, harness.nowMillis)).toBeUndefined();
  });

  it(`is refused beside ${STATED_WINDOWS_PER_KEY_MAX} others of its key, until one of them is forgotten`, () => {
    const harness = harnessWith({ id: 'sweeper', limit: 1_000_000, windowMillis: 10 });
    const asked = (i: number, userId = 'ada') => harness.one({ userId, ruleId: statedRuleId(1, 1_000 + i) });
    for (let i = 0; i < STATED_WINDOWS_PER_KEY_MAX; i += 1) expect(asked(i).allowed).toBe(true);
    expect(asked(STATED_WINDOWS_PER_KEY_MAX)).toMatchObject({ allowed: false, refusal: 'at_capacity' });
    // The same answer as before, and the same state.
    expect(asked(7)).toMatchObject({ allowed: false, remaining: 0 });
    expect(asked(STATED_WINDOWS_PER_KEY_MAX, 'bob').allowed).toBe(true);
    harness.nowMillis += 10_000;
    harness.machine.apply({ type: 'sweep' }, harness.next());
    expect(asked(STATED_WINDOWS_PER_KEY_MAX).allowed).toBe(true);
  });

  it('is granted even if another caller states 2,000 rules', () => {
    const harness = harnessWith({});
    for (let i = 0; i < 2_000; i += 1) {
      const ruleId = statedRuleId(1, WINDOW_MILLIS_MAX - i);
      expect(harness.one({ userId: `eve-${i >> 5}`, ruleId }).allowed).toBe(true);
    }
    expect([1, 2, 3].map(() => ask(harness, 'ada').allowed)).toEqual([true, true, false]);
  });

  it('is forgotten by its own window, even if other windows of its key are longer', () => {
    const harness = harnessWith({});
    const [short, long] = [statedRuleId(1, 1_000), statedRuleId(1, 60_000)];
    for (const ruleId of [long, short]) expect(ask(harness, 'ada', ruleId).allowed).toBe(true);
    const keys = () =>
      [...harness.machine.inspect()].flatMap((item) => (item.kind === 'key' ? [item.ruleId] : []));
    for (const [millis, left] of [
      [1_000, [long, short]],
      [1, [long]],
      [58_999, [long]],
      [1, []],
    ] as const) {
      harness.nowMillis += millis;
      for (const _ of [1, 2]) harness.machine.apply({ type: 'sweep' }, harness.next());
      expect(keys()).toEqual(left);
    }
  });

  it('is forgotten by a reset of its key, with all other rules of that key and no other key', () => {
    const harness = harnessWith({});
    const ids = [1_000, 2_000, 3_000].map((windowMillis) => statedRuleId(1, windowMillis));
    // The name of a key may equal another key with a rule id appended.
    const others = ['bob', `ada\n${ids[0]}`, 'ad', 'adaa'];
    for (const userId of ['ada', ...others])
      for (const ruleId of ids) expect(ask(harness, userId, ruleId).allowed).toBe(true);
    harness.say('ada', { type: 'reset' });
    for (const ruleId of ids) {
      for (const userId of others) expect(ask(harness, userId, ruleId).allowed).toBe(false);
      expect([1, 2].map(() => ask(harness, 'ada', ruleId).allowed)).toEqual([true, false]);
    }
  });

  it('has a budget for every key of up to 1,024 bytes', () => {
    const harness = harnessWith({});
    const begin = 'k'.repeat(1_023);
    for (const userId of [`${begin}a`, `${begin}b`]) {
      expect([1, 2, 3].map(() => ask(harness, userId).allowed)).toEqual([true, true, false]);
      expect([1, 2, 3, 4].map(() => harness.allows(userId))).toEqual([true, true, true, false]);
    }
    const machine = new LimiterStateMachine();
    restoreInto(machine, snapshotOf(harness.machine));
    expect(machine.hash()).toBe(harness.machine.hash());
  });
});
