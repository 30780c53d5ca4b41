/** Each stated rule has exactly one id, which contains the whole rule. No other text is accepted as one. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RULE_ID_BYTES_MAX } from '../../src/api/request.ts';
import { LIMIT_MAX, WINDOW_MILLIS_MAX } from '../../src/api/rule.ts';
import { parseStatedRule, statedRuleId } from '../../src/api/stated-rule.ts';

it('is decoded as it was stated', () => {
  const limits = fc.integer({ min: 0, max: LIMIT_MAX });
  const windows = fc.integer({ min: 1, max: WINDOW_MILLIS_MAX });
  fc.assert(
    fc.property(limits, windows, (limit, windowMillis) => {
      const id = statedRuleId(limit, windowMillis);
      expect(parseStatedRule(id)).toEqual({ limit, windowMillis });
      expect(id.length).toBeLessThanOrEqual(RULE_ID_BYTES_MAX);
    }),
  );
  expect(statedRuleId(16, 60_000)).toBe('16/60000ms');
});

it.each([
  'default',
  '',
  '16/60000',
  '16/60000s',
  '016/60000ms',
  '16/060000ms',
  '16/0ms',
  '-1/60000ms',
  '+1/60000ms',
  '1.0/60000ms',
  '16/60000ms ',
  ' 16/60000ms',
  '16/60000ms\n',
  `${LIMIT_MAX + 1}/1ms`,
  `1/${WINDOW_MILLIS_MAX + 1}ms`,
])('is not decoded from %j', (id) => {
  expect(parseStatedRule(id)).toBeUndefined();
});
