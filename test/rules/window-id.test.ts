/** Tests the ids of windows in all forms of rules: documents, tables and stated limits. */
import { describe, expect, it } from 'vitest';
import { definitionsOfTable, limiterRulesOf, statedDefinition } from '../../src/rules/limiter-rules.ts';
import { isPeriod, periodOf, windowRuleId } from '../../src/rules/rule-definition.ts';

describe('a period', () => {
  it.each([
    [1_000, 'second'],
    [60_000, 'minute'],
    [3_600_000, 'hour'],
    [86_400_000, 'day'],
    [90_000, '90000ms'],
    [1, '1ms'],
  ])('of %i ms has the name %s, which no other window may have', (windowMillis, name) => {
    expect(periodOf(windowMillis)).toBe(name);
    expect(isPeriod(name)).toBe(true);
  });

  it.each(['peak', 'days', 'ms', '5s', ''])('is not %j', (name) => {
    expect(isPeriod(name)).toBe(false);
  });
});

describe('the id of a window', () => {
  const window = { limit: 5, windowMillis: 60_000 };

  it('is its rule and its period, or its rule and its own name', () => {
    expect(windowRuleId({ id: 'per-user' }, window)).toBe('per-user/minute');
    expect(windowRuleId({ id: 'per-user' }, { ...window, name: 'peak' })).toBe('per-user/peak');
  });

  it('is that of its rule in a table, so that a window of another length keeps its grants', () => {
    const rule = { id: 'default', limit: 5, windowMillis: 60_000, clock: 'request' } as const;
    const ids = [60_000, 86_400_000].map((windowMillis) => {
      const [definition] = definitionsOfTable([{ ...rule, windowMillis }]);
      return windowRuleId(definition!, definition!.windows[0]!);
    });
    expect(ids).toEqual(['default', 'default']);
  });

  it('is that of its rule if a request states it', () => {
    const definition = statedDefinition('100/60000ms');
    expect(windowRuleId(definition, definition.windows[0]!)).toBe('100/60000ms');
    expect(definition).toMatchObject({ failMode: 'closed', enabled: true, shadow: false });
  });
});

describe('a table', () => {
  const TABLE = [
    { id: 'default', limit: 5, windowMillis: 60_000, clock: 'request' },
    { id: 'login', limit: 1, windowMillis: 1_000, clock: 'cluster', meter: 'tokenBucket', burst: 3 },
  ] as const;

  it('counts by user: its first rule is for all requests, the others are used by name', () => {
    const [first, second] = definitionsOfTable(TABLE);
    expect(first).toMatchObject({ id: 'default', scope: { conditions: [], key: [{ name: 'user' }] } });
    expect(first).not.toHaveProperty('named');
    expect(second).toMatchObject({ id: 'login', named: true, meter: 'tokenBucket', burst: 3 });
  });

  it('is kept by the limiter unchanged, with one window per rule', () => {
    expect(limiterRulesOf(definitionsOfTable(TABLE))).toMatchObject(TABLE);
  });
});
