/** A survey predicts which keys sweeps will forget, for all meters and tables. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { decodeCommand, encodeSweep } from '../../src/limiter/log/command.ts';
import { LATE_MILLIS } from '../../src/limiter/state/lost-history.ts';
import type { IdleSurvey } from '../../src/limiter/state/idle-survey.ts';
import { type Harness, harnessWith, START } from './harness.ts';

const METERS: readonly [string, Partial<Rule>][] = [
  ['a log', {}],
  ['a log of granules', { granularityMillis: 100 }],
  ['a counter', { meter: 'slidingCounter' }],
  ['a fixed window', { meter: 'fixedWindow' }],
  ['a token bucket', { meter: 'tokenBucket', burst: 30 }],
  ['a leaky bucket', { meter: 'leakyBucket', queue: 20 }],
];

function surveyed(harness: Harness, checks = 100_000): IdleSurvey {
  const survey = harness.machine.survey();
  while (!survey.isDone) survey.check(checks, harness.nowMillis);
  return survey;
}

function swept(harness: Harness): number {
  const before = countOf(harness);
  for (let i = 0; i < 3; i += 1) harness.machine.apply(decodeCommand(encodeSweep()), harness.next());
  return before - countOf(harness);
}

function countOf({ machine }: Harness): number {
  const { keys, requestIds, customers } = machine.stats();
  return keys + requestIds + customers;
}

describe.each(METERS)('of %s', (_, meter) => {
  it('nothing can be forgotten before the first time, and everything from the last time on', () => {
    const harness = harnessWith({ limit: 10, windowMillis: 1_000, ...meter });
    for (let i = 0; i < 40; i += 1) {
      harness.nowMillis += 37;
      harness.one({ userId: `user${i % 13}`, cost: 1 + (i % 3) });
    }
    const { firstMillis, lastMillis, dueCount } = surveyed(harness);
    expect(dueCount).toBe(0);
    expect(firstMillis).toBeGreaterThan(harness.nowMillis);
    harness.nowMillis = firstMillis - 1;
    expect(swept(harness)).toBe(0);
    harness.nowMillis = firstMillis;
    const due = surveyed(harness, 3).dueCount;
    expect(due).toBeGreaterThan(0);
    expect(swept(harness)).toBe(due);
    harness.nowMillis = lastMillis - 1;
    swept(harness);
    expect(countOf(harness)).toBeGreaterThan(0);
    harness.nowMillis = lastMillis;
    swept(harness);
    expect(countOf(harness)).toBe(0);
  });
});

describe('a survey', () => {
  it('includes the minute by which callers may be late', () => {
    const harness = harnessWith({ limit: 1 });
    harness.allows('ada', START);
    expect(surveyed(harness).firstMillis).toBe(START + 1_001 + LATE_MILLIS);
  });

  it('uses the override of a key', () => {
    const harness = harnessWith({ limit: 10, windowMillis: 1_000, meter: 'tokenBucket' });
    harness.one({ userId: 'ada', cost: 10 });
    const { lastMillis } = surveyed(harness);
    const overrides = [{ ruleId: 'rule0', limit: 1, burst: 10 }];
    harness.say('ada', { type: 'put', overrides });
    expect(surveyed(harness).lastMillis).toBeGreaterThan(lastMillis + 5_000);
  });

  it('finds stated windows, request ids and blocks with an end, but no block without one', () => {
    const harness = harnessWith({ limit: 10 });
    expect(surveyed(harness)).toMatchObject({ firstMillis: Infinity, lastMillis: -Infinity });
    harness.say('eve', { type: 'block', isBlocked: true });
    expect(surveyed(harness)).toMatchObject({ firstMillis: Infinity, dueCount: 0 });
    harness.say('bob', { type: 'block', isBlocked: true, durationMillis: 700 });
    expect(surveyed(harness)).toMatchObject({ firstMillis: START + 700, lastMillis: START + 700 });
    harness.one({ userId: 'ada', ruleId: '5/60000ms', requestId: 'one' });
    const survey = surveyed(harness);
    expect(survey.firstMillis).toBe(START + 700);
    harness.nowMillis = survey.lastMillis - 1;
    swept(harness);
    expect(countOf(harness)).toBe(2);
    harness.nowMillis = survey.lastMillis;
    swept(harness);
    // A block without an end stays.
    expect(countOf(harness)).toBe(1);
    expect(surveyed(harness)).toMatchObject({ firstMillis: Infinity, dueCount: 0 });
  });

  it('changes nothing', () => {
    const harness = harnessWith({ limit: 10 });
    for (let i = 0; i < 100; i += 1) harness.one({ userId: `user${i}`, requestId: `id${i}` });
    harness.nowMillis += 3_600_000;
    const hash = harness.machine.hash();
    expect(surveyed(harness).dueCount).toBe(200);
    expect(harness.machine.hash()).toBe(hash);
  });
});
