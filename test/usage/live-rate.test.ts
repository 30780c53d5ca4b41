/** Tests the rate of answers per second from two readings of counts by minute. */
import { describe, expect, it } from 'vitest';
import type { UsageReport } from '../../src/api/usage.ts';
import { LatestTimes } from '../../src/usage/answer-times.ts';
import { LiveRate } from '../../src/usage/live-rate.ts';
import { RecentFigures } from '../../src/usage/recent-figures.ts';

const MINUTE = 60_000;

/** @param allowed in the last minute and in the current one */
function reportOf(
  minute: number,
  allowed: readonly number[],
  nodes: readonly number[] = [1, 2, 3],
): UsageReport {
  const zeros = allowed.map(() => 0);
  const fromMillis = (minute - 1) * MINUTE;
  const history = { fromMillis, allowed, denied: zeros, unavailable: zeros, degraded: zeros };
  return { minutes: 2, nodes, silent: [], rules: [], history };
}

describe('the rate of answers', () => {
  it('is the count between two readings, per second', () => {
    const rate = new LiveRate();
    expect(rate.seen(reportOf(10, [100, 7]), 1_000)).toBeUndefined();
    expect(rate.seen(reportOf(10, [100, 27]), 3_000)).toEqual({
      allowed: 10,
      denied: 0,
      unavailable: 0,
      degraded: 0,
    });
  });

  it('continues over the end of a minute, also for late counts in the previous one', () => {
    const rate = new LiveRate();
    rate.seen(reportOf(10, [100, 50]), 0);
    expect(rate.seen(reportOf(11, [54, 6]), 1_000)?.allowed).toBe(10);
  });

  it('is unknown if the set of nodes has changed, one has restarted, or the reading is too old', () => {
    const rate = new LiveRate();
    rate.seen(reportOf(10, [0, 50]), 0);
    expect(rate.seen(reportOf(10, [0, 60], [1, 2]), 1_000)).toBeUndefined();
    expect(rate.seen(reportOf(10, [0, 20], [1, 2]), 2_000)).toBeUndefined();
    expect(rate.seen(reportOf(10, [0, 21], [1, 2]), 3_000)?.allowed).toBe(1);
    expect(rate.seen(reportOf(11, [30, 0], [1, 2]), 3_001 + MINUTE)).toBeUndefined();
  });
});

describe('the times of the latest answers', () => {
  it('are those between the readings of the last seconds', () => {
    const figures = new RecentFigures();
    const latest = new LatestTimes();
    for (let i = 0; i < 50; i += 1) figures.took(500);
    expect(latest.seen(figures.times, 0)).toBeNull();
    for (let i = 0; i < 98; i += 1) figures.took(1);
    for (let i = 0; i < 2; i += 1) figures.took(100);
    const reported = latest.seen(figures.times, 2_000);
    expect(reported).toMatchObject({ seconds: 2, timed: 100, p50Millis: 1 });
    expect(reported?.p99Millis).toBeGreaterThanOrEqual(100);
    expect(reported?.p99Millis).toBeLessThan(120);
  });

  it('are dropped when there were no answers for a while', () => {
    const figures = new RecentFigures();
    const latest = new LatestTimes();
    latest.seen(figures.times, 0);
    figures.took(1);
    for (let second = 1; second <= 10; second += 1)
      expect(latest.seen(figures.times, 1_000 * second)?.timed).toBe(1);
    expect(latest.seen(figures.times, 11_000)).toBeNull();
  });
});
