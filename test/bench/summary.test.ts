/** Tests the choice of the cells of a run, and the summary of all rounds of each cell. */
import { describe, expect, test } from 'vitest';
import { liveGrants } from '../../bench/peers/etcd-limiter.ts';
import { sumOfMetric } from '../../bench/peers/metrics-text.ts';
import { thingsUnderLoad } from '../../bench/peers/all.ts';
import { type Cell, estimateMillis, FULL_TIMING, planCells, QUICK_TIMING } from '../../bench/plan.ts';
import { resultsPage } from '../../bench/report/page.ts';
import { resultsOf } from '../../bench/report/results.ts';
import { comparisonTable } from '../../bench/report/table.ts';
import type { RoundSample } from '../../bench/rounds.ts';
import { Running } from '../../bench/running.ts';
import { comparisonsOf, summarize } from '../../bench/summary.ts';

const THINGS = thingsUnderLoad(new Running());

function planned(only: readonly string[], isQuick = true): Cell[] {
  return planCells(THINGS, { isQuick, isSweep: false, only });
}

function sample(cell: string, round: number, more: Partial<RoundSample>): RoundSample {
  return {
    cell,
    round,
    decisionsPerSecond: 1,
    grants: 100,
    denials: 0,
    errors: 0,
    unexpected: 0,
    p50Millis: 1,
    p99Millis: 2,
    p999Millis: 3,
    maxMillis: 4,
    loadCpuSecondsPerMillion: 1,
    ...more,
  };
}

describe('the plan', () => {
  test('measures grants of every limiter, and denials of those that keep nothing on disk', () => {
    const ids = planned([]).map(({ id }) => id);
    expect(ids).toContain('bare-http/http-48/grants');
    expect(ids).toContain('quorate/http-48/denials');
    expect(ids).toContain('quorate/resp-cluster-16/grants');
    expect(ids).toContain('redis-strict/resp-16/grants');
    expect(ids).toContain('redis-memory/resp-16/denials');
    expect(ids).not.toContain('bare-resp/resp-16/denials');
    expect(ids).not.toContain('redis-memory/http-48/grants');
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('has a baseline for every workload with more than one limiter', () => {
    const cells = planned([], false);
    const ids = cells.map(({ id }) => id);
    const shared = cells.filter(({ setup }) => setup.only === undefined);
    for (const { setup } of shared) expect(ids).toContain(`${setup.bare}/${setup.id}/grants`);
  });

  test('can be reduced by parts of ids', () => {
    expect(planned(['etcd', 'postgres', 'quorate/http']).map(({ id }) => id)).toEqual([
      'quorate/http-48/grants',
      'quorate/http-48/denials',
      'postgres/resp-1/grants',
      'etcd/resp-1/grants',
    ]);
    expect(planned(['nobody'])).toEqual([]);
  });

  test('takes less than a quarter of an hour, and three minutes in its short form', () => {
    expect(estimateMillis(planned([], false), FULL_TIMING)).toBeLessThan(15 * 60_000);
    expect(estimateMillis(planned([]), QUICK_TIMING)).toBeLessThan(3 * 60_000);
  });
});

describe('the summary', () => {
  const cells = planned(['http-48']);
  const samples = [
    sample('bare-http/http-48/grants', 1, { decisionsPerSecond: 1_000 }),
    sample('bare-http/http-48/grants', 2, { decisionsPerSecond: 100 }),
    sample('quorate/http-48/grants', 1, { decisionsPerSecond: 200, cpuSecondsPerMillion: 7 }),
    sample('quorate/http-48/grants', 2, { decisionsPerSecond: 40, errors: 100, unexpected: 100 }),
    sample('flexible/http-48/grants', 1, { decisionsPerSecond: 20 }),
  ];
  const summaries = summarize(cells, samples);
  const rowOf = (thing: string) => summaries.find((each) => each.thing === thing);

  test('has ratios to the baseline, round by round', () => {
    expect(rowOf('quorate')?.timesBare).toEqual({ median: (0.2 + 0.4) / 2, min: 0.2, max: 0.4 });
    expect(rowOf('bare-http')?.timesBare).toEqual({ median: 1, min: 1, max: 1 });
  });

  test('has ratios of Quorate to each limiter, from the rounds that both have', () => {
    expect(rowOf('flexible')?.quorateTimes).toEqual({ median: 10, min: 10, max: 10 });
  });

  test('omits cells that were never measured, and counts unexpected answers', () => {
    expect(summaries.map(({ cell }) => cell)).toEqual([
      'bare-http/http-48/grants',
      'quorate/http-48/grants',
      'flexible/http-48/grants',
    ]);
    expect(rowOf('quorate')?.unexpectedFraction).toBeCloseTo(1 / 3);
    expect(rowOf('quorate')?.cpuSecondsPerMillion).toEqual({ median: 7, min: 7, max: 7 });
    expect(rowOf('flexible')?.cpuSecondsPerMillion).toBeUndefined();
  });

  test('is a table and a page, in which names are escaped', () => {
    const timing = { rounds: 2, measuredMillis: 1_000, warmUpMillis: 100, firstWarmUpMillis: 0 };
    const notes = ['<script>alert(1)</script>'];
    const run = { startedAt: new Date(0), loadAverageBefore: 0, timing, seed: 1 };
    const page = resultsPage(resultsOf(run, cells, { samples, notes }));
    expect(page).toContain('Quorate, 3 nodes');
    expect(page).not.toContain('<script');
    expect(page).not.toMatch(/(?:src|href)=/);
    const [comparison] = comparisonsOf(summaries);
    expect(comparisonTable(comparison!)).toMatch(/rate-limiter-flexible, Redis +0 +all +20\.0/);
  });
});

describe('figures of the measured systems', () => {
  test('sum a metric over its labels, and not over longer names', () => {
    const text = '# HELP syncs all\nsyncs{node="1"} 2\nsyncs{node="2"} 3.5\nsyncs_total 100\nsyncs 1e2\n';
    expect(sumOfMetric(text, 'syncs')).toBe(105.5);
    expect(sumOfMetric(text, 'nothing')).toBe(0);
  });

  test('exclude a grant in etcd that is exactly a window old', () => {
    const value = Buffer.alloc(24);
    for (const [i, millis] of [1_000, 2_000, 3_000].entries()) value.writeDoubleBE(millis, i * 8);
    expect(liveGrants(value, 999).length).toBe(24);
    expect(liveGrants(value, 2_000).length).toBe(8);
    expect(liveGrants(value, 3_000).length).toBe(0);
  });
});
