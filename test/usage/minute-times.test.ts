/** Tests answer times by minute, of one node and of all. */
import { describe, expect, it } from 'vitest';
import { USAGE_MINUTES_MAX } from '../../src/api/usage.ts';
import { millisOfStep, MinuteTimes } from '../../src/usage/answer-times.ts';
import { type NodeUsage, reportOf, zeros } from '../../src/usage/node-usage.ts';

const NONE = { keys: [], othersMax: 0 };

function reported(late?: readonly number[]): NodeUsage {
  const usage = { rules: [], history: zeros(12), topFromMinute: 0, allowed: NONE, denied: NONE };
  return late === undefined ? usage : { ...usage, late };
}

function took(times: MinuteTimes, millis: number, count: number): void {
  for (let i = 0; i < count; i += 1) times.took(millis);
}

function inMillis(late: readonly number[]): (number | null)[] {
  return late.map((step) => (step === 0 ? null : millisOfStep(step - 1)));
}

describe('the times of a minute', () => {
  it('are reported as the 99th percentile, also of the current minute, and not at all for an idle one', () => {
    const times = new MinuteTimes();
    times.turnTo(10);
    took(times, 1, 98);
    took(times, 64, 2);
    times.turnTo(12);
    took(times, 1, 99);
    took(times, 64, 1);
    expect(inMillis(times.late(4, 12))).toEqual([null, 64, null, 1]);
  });

  it('are kept for a day, and never shown for another minute', () => {
    const times = new MinuteTimes();
    times.turnTo(5);
    took(times, 1, 1);
    times.turnTo(5 + USAGE_MINUTES_MAX);
    took(times, 64, 1);
    times.turnTo(6 + USAGE_MINUTES_MAX);
    expect(inMillis(times.late(2, 6 + USAGE_MINUTES_MAX))).toEqual([64, null]);
    expect(inMillis(times.late(1, 5))).toEqual([null]);
    expect(times.late(3, 1)).toEqual([0, 0, 0]);
  });

  it('of a cluster are those of its slowest node, without nodes that have none', () => {
    const query = { minutes: 2, ruleId: undefined, top: 0 };
    const of = (usages: readonly NodeUsage[]): unknown =>
      reportOf({
        query,
        untilMinute: 9,
        silent: [],
        reported: new Map(usages.map((usage, i) => [i, usage])),
      }).history.p99Millis;
    expect(of([reported([13, 0]), reported([33, 0]), reported()])).toEqual([32, null]);
    expect(of([reported()])).toBeUndefined();
  });
});
