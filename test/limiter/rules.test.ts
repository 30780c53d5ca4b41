/** The validation of rules and rule tables, and the effective window. */
import { describe, expect, it } from 'vitest';
import { effectiveWindowMillis, InvalidRuleError, validateRuleTable } from '../../src/limiter/rules.ts';
import type { Rule } from '../../src/api/rule.ts';
import { thrownBy } from './harness.ts';

const rule = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'cluster' };

describe('a rule table', () => {
  it('gets the defaults for absent fields', () => {
    const table = validateRuleTable({
      version: 1,
      rules: [{ id: 'a', limit: 1, windowMillis: 1 }],
      extra: 1,
    });
    expect(table).toEqual({
      version: 1,
      rules: [{ id: 'a', limit: 1, windowMillis: 1, clock: 'request' }],
      requestIdHorizonMillis: 120_000,
      clockDriftPpm: 500,
      partitionBytesMax: 268_435_456,
    });
  });

  it.each([
    [null, 'table'],
    [[], 'table'],
    [{ version: 1 }, 'rules'],
    [{ version: 1, rules: [] }, 'rules'],
    [{ version: 0, rules: [rule] }, 'version'],
    [{ version: 1, rules: [{ ...rule, id: '' }] }, 'rules[0].id'],
    [{ version: 1, rules: [rule, rule] }, 'rules[1].id'],
    [{ version: 1, rules: [rule, { ...rule, id: '10/1000ms' }] }, 'rules[1].id'],
    [{ version: 1, rules: [{ ...rule, limit: 1_000_001 }] }, 'rules[0].limit'],
    [{ version: 1, rules: [{ ...rule, limit: '5' }] }, 'rules[0].limit'],
    [{ version: 1, rules: [{ ...rule, windowMillis: 0 }] }, 'rules[0].windowMillis'],
    [{ version: 1, rules: [{ ...rule, clock: 'wall' }] }, 'rules[0].clock'],
    [{ version: 1, rules: [{ ...rule, windowMilis: 1 }] }, 'rules[0].windowMilis'],
    [{ version: 1, rules: [7] }, 'rules[0]'],
    [{ version: 1, rules: [{ ...rule, meter: 'hourglass' }] }, 'rules[0].meter'],
    [{ version: 1, rules: [{ ...rule, burst: 5 }] }, 'rules[0].burst'],
    [{ version: 1, rules: [{ ...rule, granularityMillis: 60_001 }] }, 'rules[0].granularityMillis'],
    [{ version: 1, rules: [{ ...rule, granularityMillis: 0 }] }, 'rules[0].granularityMillis'],
    [{ version: 1, rules: [{ ...rule, meter: 'fixedWindow', calendar: 'week' }] }, 'rules[0].calendar'],
    [{ version: 1, rules: [{ ...rule, meter: 'fixedWindow', calendar: 'month' }] }, 'rules[0].windowMillis'],
    [
      { version: 1, rules: [{ ...rule, meter: 'fixedWindow', granularityMillis: 5 }] },
      'rules[0].granularityMillis',
    ],
    [{ version: 1, rules: [{ ...rule, meter: 'tokenBucket', burst: 0 }] }, 'rules[0].burst'],
    [{ version: 1, rules: [{ ...rule, meter: 'tokenBucket', queue: 1 }] }, 'rules[0].queue'],
    [{ version: 1, rules: [{ ...rule, meter: 'leakyBucket', queue: 999_901 }] }, 'rules[0].queue'],
    [{ version: 1, rules: [rule], clockDriftPpm: -1 }, 'clockDriftPpm'],
    [{ version: 1, rules: [rule], requestIdHorizonMillis: 0.5 }, 'requestIdHorizonMillis'],
  ])('is refused naming the field: %j', (table, field) => {
    const error = thrownBy(() => validateRuleTable(table));
    expect(error).toBeInstanceOf(InvalidRuleError);
    expect(error).toMatchObject({ code: 'INVALID_RULE', field });
  });
});

describe('the id of a rule in a table', () => {
  it('must not have the form of a stated rule', () => {
    expect(() => ruleWith({ id: '10/1000ms' })).toThrow(
      "rules[0].id must be of another form than LIMIT/MILLISms and COUNT/MILLISms+BURST, which are reserved for rules that requests state, but is '10/1000ms'",
    );
    expect(ruleWith({ id: '10/1000' })?.id).toBe('10/1000');
  });
});

function ruleWith(fields: object): Rule | undefined {
  return validateRuleTable({ version: 1, rules: [{ ...rule, ...fields }] }).rules[0];
}

describe('the meter of a rule', () => {
  it('is a sliding log of every millisecond unless the rule says otherwise', () => {
    expect(ruleWith({ meter: 'slidingLog', granularityMillis: 1 })).toEqual(rule);
    expect(ruleWith({ meter: 'leakyBucket', queue: 0 })).toEqual({ ...rule, meter: 'leakyBucket' });
  });

  it('accepts its own fields, and refuses those of another meter by name', () => {
    const leaky = { meter: 'leakyBucket', burst: 1, queue: 999_999 };
    expect(ruleWith(leaky)).toEqual({ ...rule, ...leaky });
    const monthly = { meter: 'fixedWindow', calendar: 'month', windowMillis: 2_678_400_000 };
    expect(ruleWith(monthly)).toEqual({ ...rule, ...monthly });
    expect(() => ruleWith({ meter: 'slidingCounter', burst: 9 })).toThrow(
      'rules[0].burst must be absent from a rule with the meter slidingCounter, but is 9',
    );
    expect(() => ruleWith({ meter: 'tokenBucket', burst: 1_000_001 })).toThrow(
      'rules[0].burst must be an integer from 1 to 1000000, but is 1000001',
    );
  });
});

function widened(windowMillis: number, ppm: number): number {
  return effectiveWindowMillis({ id: 'a', limit: 1, windowMillis, clock: 'cluster' }, ppm);
}

describe('the effective window', () => {
  it('is wider by six fifths of the drift and by the millisecond that rounding down can hide', () => {
    expect(widened(1, 0)).toBe(2);
    expect(widened(60_000, 500)).toBe(60_037);
    expect(widened(60_000, 100)).toBe(60_009);
    expect(widened(1_000_000, 1)).toBe(1_000_003);
    expect(widened(999_999, 1)).toBe(1_000_002);
    expect(widened(2_678_400_000, 100_000)).toBe(2_999_808_001);
  });
});
