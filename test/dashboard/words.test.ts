/** Tests how numbers, durations and events are shown, and the columns of the charts. */
import { describe, expect, it } from 'vitest';
import type { LiveFigures } from '../../src/api/monitoring.ts';
import { NO_SAMPLES, SAMPLES_MAX, withSample } from '../../src/dashboard/feed.ts';
import { movesOf, placeInWords } from '../../src/dashboard/cluster-state.ts';
import {
  faultInWords,
  listed,
  millis,
  nodesInWords,
  partsPerMillion,
  percent,
  rate,
  shortNumber,
  span,
} from '../../src/dashboard/words.ts';
import { FIGURES } from '../http/fixtures.ts';

function at(second: number, changes: Partial<LiveFigures> = {}): LiveFigures {
  return { ...FIGURES, atMillis: 1_000 * second, ...changes };
}

describe('the cluster in words', () => {
  it('says from where and to where a partition moves', () => {
    const replicas = [1, 2, 3].map((node) => ({ node, match: 5, applied: 5 }));
    const settled = { id: 0, leader: 1, term: 1, commit: 5, placed: true, replicas };
    const moving = { ...settled, placed: false };
    expect(movesOf({ ...moving, wanted: [4, 2, 1] })).toEqual({ to: [4], from: [3] });
    const words = [settled, moving, { ...moving, wanted: [4, 2, 1] }, { ...moving, wanted: [1, 2] }].map(
      (partition) => placeInWords(partition),
    );
    expect(words).toEqual([
      'in place',
      'moving',
      'moving to node 4 away from node 3',
      'moving away from node 3',
    ]);
  });

  it('says which partitions a fault is about, and how many more', () => {
    expect(
      faultInWords({ id: 1, atMillis: 1, kind: 'leaderLost', node: 3, count: 18, partitions: [0, 4] }),
    ).toBe('18 partitions (0, 4 and 16 more) lost the leader, node 3');
  });

  it('names one node or several, and of many the first', () => {
    expect([nodesInWords([2]), nodesInWords([2, 3]), nodesInWords([1, 2, 3])]).toEqual([
      'node 2',
      'nodes 2 and 3',
      'nodes 1, 2 and 3',
    ]);
    expect(listed(Array.from({ length: 11 }, (_, i) => i))).toBe('0, 1, 2, 3, 4, 5, 6, 7 and 3 more');
  });

  it('shows a fraction as 0 % or 100 % only if it is exact', () => {
    const fractions = [0, 0.000_5, 0.012, 0.5, 0.554, 0.996, 0.999_9, 1];
    expect(fractions.map(percent)).toEqual([
      '0 %',
      'under 0.1 %',
      '1.2 %',
      '50 %',
      '55 %',
      '99.9 %',
      'over 99.9 %',
      '100 %',
    ]);
    expect([null, 0.3, 12.4, -3.6].map(partsPerMillion)).toEqual([
      'not compared yet',
      'in step',
      '+12 ppm',
      '−4 ppm',
    ]);
  });

  it('shortens large numbers where there is little room', () => {
    expect([0, 99_999, 100_000, 1_234_567].map(shortNumber)).toEqual(['0', '99,999', '100K', '1.23M']);
  });

  it('shows durations in at most two units, rounded up', () => {
    expect([span(0), span(900.2), span(1_001), span(60_000), span(90_061_000)]).toEqual([
      '0 ms',
      '901 ms',
      '2 s',
      '1 min',
      '1 d 1 h',
    ]);
    expect([rate(null), rate(0), rate(0.25), rate(12.6), millis(1.26), millis(12.6)]).toEqual([
      '–',
      '0',
      '0.3',
      '13',
      '1.3 ms',
      '13 ms',
    ]);
  });
});

describe('the samples of a chart', () => {
  it('are a column for each series, with null for unknown values', () => {
    const samples = withSample(withSample(NO_SAMPLES, at(1)), at(2, { rates: null, clusterTimes: null }));
    expect(samples.seconds).toEqual([1, 2]);
    expect(samples.rates[0]).toEqual([12.5, null]);
    // The latencies of the whole cluster.
    expect(samples.times[1]).toEqual([8, null]);
  });

  it('are bounded, and start again when the clock steps back', () => {
    let samples = NO_SAMPLES;
    for (let second = 1; second <= SAMPLES_MAX + 3; second += 1) samples = withSample(samples, at(second));
    expect([samples.seconds.length, samples.seconds[0], samples.rates[3]?.length]).toEqual([
      SAMPLES_MAX,
      4,
      SAMPLES_MAX,
    ]);
    expect(withSample(samples, at(2)).seconds).toEqual([2]);
  });
});
