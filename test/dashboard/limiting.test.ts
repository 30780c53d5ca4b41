/** Tests the figures of the overview without a browser: denied fraction, limited keys, and chart data. */
import { describe, expect, it } from 'vitest';
import type { UsageReport } from '../../src/api/usage.ts';
import { drawnOf, shownColumns, byDenials, compared, deniedFraction } from '../../src/dashboard/history.ts';
import { limitedKeys, peekedIn, type Reading, withReading } from '../../src/dashboard/limited-keys.ts';
import { NO_SAMPLES, withSample } from '../../src/dashboard/feed.ts';
import { FIGURES } from '../http/fixtures.ts';

const MINUTE = 60_000;
const FROM = 1_000 * MINUTE;

function historyOf(allowed: readonly number[], denied: readonly number[]): UsageReport['history'] {
  const zeros = allowed.map(() => 0);
  return { fromMillis: FROM, allowed, denied, unavailable: zeros, degraded: zeros };
}

function readingOf(atMillis: number, ...counts: readonly (readonly [string, number])[]): Reading {
  return { atMillis, denied: counts.map(([key, count]) => ({ rule: 'r', key, count, error: 0 })) };
}

function ruleOf(
  rule: string,
  allowed: number,
  denied: number,
  wouldDeny: number,
): UsageReport['rules'][number] {
  return { rule, allowed, denied, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny };
}

describe('the denied fraction', () => {
  it('covers the last minutes, and as many before for comparison', () => {
    const { now, before } = compared(historyOf([9, 9, 1, 2], [0, 2, 3, 4]), 2);
    expect([now.allowed, now.denied, before?.allowed, before?.denied]).toEqual([3, 7, 18, 2]);
    expect(deniedFraction(now)).toBe(0.7);
    expect(before && deniedFraction(before)).toBe(0.1);
  });

  it('has no comparison if the history is too short, and no value without requests', () => {
    expect(compared(historyOf([1, 2, 3], [0, 0, 0]), 2).before).toBeUndefined();
    expect(deniedFraction({ allowed: 0, denied: 0 })).toBeUndefined();
  });

  it('sorts rules by their denials, and then by the denials that shadow rules would make', () => {
    const rules = [ruleOf('idle', 900, 0, 0), ruleOf('shadow', 0, 0, 7), ruleOf('tight', 1, 2, 0)];
    expect(byDenials(rules).map((each) => each.rule)).toEqual(['tight', 'shadow', 'idle']);
  });
});

describe('the keys limited most just now', () => {
  it('are those whose denials grew most between the readings, then those with most', () => {
    const readings = withReading([readingOf(0, ['old', 900], ['new', 10], ['calm', 50])], {
      ...readingOf(10_000, ['old', 900], ['new', 30], ['calm', 55], ['fresh', 8]),
    });
    expect(limitedKeys(readings, 9, 3)).toEqual([
      { key: 'new', rule: 'r', denied: 30, perSecond: 2 },
      { key: 'calm', rule: 'r', denied: 55, perSecond: 0.5 },
      { key: 'old', rule: 'r', denied: 900, perSecond: 0 },
      // A key missing from the older list may have had as many denials as the last key in it.
      { key: 'fresh', rule: 'r', denied: 8, perSecond: 0 },
    ]);
    // The older list was not full, so it named all denied keys.
    expect(limitedKeys(readings, 9, 4)[1]).toMatchObject({ key: 'fresh', perSecond: 0.8 });
    expect(limitedKeys(readings, 1, 3).map(({ key }) => key)).toEqual(['new']);
  });

  it('have no rate before the second reading, and are not compared with a reading that is too old', () => {
    expect(limitedKeys([readingOf(0, ['a', 3])], 9, 3)[0]?.perSecond).toBeUndefined();
    const readings = withReading([readingOf(0, ['a', 3])], readingOf(60_001, ['a', 5]));
    expect(readings.length).toBe(1);
    expect(limitedKeys([], 9, 3)).toEqual([]);
  });

  it('are granted again when the rule that denied them has room', () => {
    const body = {
      limits: [
        { rule: 'a', limit: 5 },
        { rule: 'b', limit: 5, retryAfterMillis: 7_000 },
        { rule: 'c', limit: 0, retryAfterMillis: 1 },
      ],
    };
    expect(['a', 'b', 'c', 'd'].map((rule) => peekedIn(body, rule))).toEqual([
      { kind: 'fits' },
      { kind: 'waits', retryMillis: 7_000 },
      { kind: 'waits', retryMillis: undefined },
      { kind: 'unknown' },
    ]);
    expect(peekedIn({ ...body, blocked: true }, 'a')).toEqual({ kind: 'blocked' });
  });
});

describe('the data of a chart', () => {
  const HISTORY = { ...historyOf([60, 120, 7], [0, 0, 0]), p99Millis: [4, null, 9] };

  it('has rates per second for each minute, and for the current minute only after half of it', () => {
    const drawn = drawnOf({ history: HISTORY, second: FROM / 1_000 + 149 }, NO_SAMPLES, 60);
    expect(drawn.seconds).toEqual([FROM / 1_000 + 30, FROM / 1_000 + 90]);
    expect(drawn.rates[0]).toEqual([1, 2]);
    expect(drawn.times).toEqual([
      [null, null],
      [4, null],
    ]);
    const later = drawnOf({ history: HISTORY, second: FROM / 1_000 + 155 }, NO_SAMPLES, 60);
    expect([later.seconds.at(-1), later.rates[0]?.at(-1)]).toEqual([FROM / 1_000 + 137.5, 0.2]);
  });

  it('begins with minutes from before the page was opened, and continues with seconds', () => {
    const second = FROM / 1_000 + 60;
    const samples = withSample(NO_SAMPLES, { ...FIGURES, atMillis: 1_000 * second });
    const drawn = drawnOf({ history: HISTORY, second }, samples, 5);
    expect(drawn.seconds).toEqual([FROM / 1_000 + 30, second]);
    expect(drawn.rates[0]).toEqual([1, 12.5]);
    expect(drawn.times[1]).toEqual([4, 8]);
    expect(drawnOf(undefined, samples, 5).seconds).toEqual([second]);
  });

  it('names in its legend only lines with data', () => {
    expect(shownColumns([[0, null], [null, 3], []])).toEqual([1]);
  });
});
