/** Tests that a node reports the start and the end of decisions by fail mode, once each. */
import { expect, it } from 'vitest';
import { DEGRADED_QUIET_MILLIS, DegradedDecisions } from '../../src/matching/degraded-decisions.ts';
import { ruleSetOf } from './bench.ts';

it('reports once when degraded decisions begin, and once when they have ended', () => {
  const changes: (readonly [boolean, number])[] = [];
  let now = 1_000;
  const degraded = new DegradedDecisions({
    takeLocal: () => expect.fail('no rule is local'),
    monotonicMillis: () => now,
    changed: (isDegraded, decisions) => changes.push([isDegraded, decisions]),
  });
  const document = 'rules: [{ id: a, failMode: open, windows: { limit: 1, per: hour } }]';
  const matched = ruleSetOf(7, document).limitsFor({ descriptors: new Map([['user', 'ada']]) });
  const limits = matched.kind === 'limits' ? matched.enforced : [];
  degraded.tick();
  expect(degraded.answer(limits, 7, degraded.take(limits).waitMillis)).toEqual({
    kind: 'degraded',
    allowed: true,
    ruleIds: ['a/hour'],
    rulesVersion: 7,
    retryAfterMillis: 0,
  });
  degraded.answer(limits, 7, 5);
  now += DEGRADED_QUIET_MILLIS - 1;
  degraded.tick();
  degraded.answer(limits, 7, 0);
  now += DEGRADED_QUIET_MILLIS - 1;
  degraded.tick();
  expect(changes).toEqual([[true, 1]]);
  now += 1;
  degraded.tick();
  degraded.tick();
  expect(changes.slice(1)).toEqual([[false, 3]]);
  degraded.answer(limits, 7, 0);
  expect(changes.slice(2)).toEqual([[true, 1]]);
});
