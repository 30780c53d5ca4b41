import { describe, expect, it } from 'vitest';
import type { LiveCluster, LiveFigures } from '../../src/api/monitoring.ts';
import { NO_SAMPLES, SAMPLES_MAX, withSample } from '../../src/dashboard/samples.ts';
import { movesOf, placeInWords } from '../../src/dashboard/replicas.ts';
import { clusterInWords, faultInWords, millis, rate, span } from '../../src/dashboard/words.ts';
import { FIGURES, REPORT } from '../http/fixtures.ts';

const { rules: _, ...report } = REPORT;
const CLUSTER: LiveCluster = { ...report, rulesVersion: 1 };
const WELL: LiveCluster = { ...CLUSTER, nodes: CLUSTER.nodes.map((node) => ({ ...node, up: true })) };

function at(second: number, changes: Partial<LiveFigures> = {}): LiveFigures {
  return { ...FIGURES, atMillis: 1_000 * second, ...changes };
}

describe('the cluster in words', () => {
  it('is well only if every node is heard, and every partition has a leader and is in its place', () => {
    expect(clusterInWords(WELL)).toEqual({
      gravity: 'good',
      words: 'All 2 nodes are up, and every partition has a leader.',
    });
    expect(clusterInWords(CLUSTER)).toEqual({
      gravity: 'bad',
      words: 'Node 2 says nothing; every partition has a leader.',
    });
    const leaderless = WELL.partitions.map((partition) => ({ ...partition, leader: 0 }));
    expect(clusterInWords({ ...WELL, partitions: leaderless }).gravity).toBe('bad');
    const moving = WELL.partitions.map((partition) => ({ ...partition, placed: false }));
    expect(clusterInWords({ ...WELL, partitions: moving }).gravity).toBe('warning');
    const restored = WELL.partitions.map((partition) => ({ ...partition, restoredMillis: 59_001 }));
    expect(clusterInWords({ ...WELL, partitions: restored })).toMatchObject({
      gravity: 'bad',
      words: expect.stringMatching(/restored .* everybody for 60 s more at most/) as string,
    });
  });

  it('says where a partition is on its way to, and from where', () => {
    const replicas = [1, 2, 3].map((node) => ({ node, match: 5, applied: 5 }));
    const settled = { id: 0, leader: 1, term: 1, commit: 5, placed: true, replicas };
    const moving = { ...settled, placed: false };
    expect(movesOf({ ...moving, wanted: [4, 2, 1] })).toEqual({ to: [4], from: [3] });
    const words = [settled, moving, { ...moving, wanted: [4, 2, 1] }, { ...moving, wanted: [1, 2] }].map(
      (partition) => placeInWords(partition),
    );
    expect(words).toEqual([
      'as it should be',
      'on its way',
      'on its way to 4 away from 3',
      'on its way away from 3',
    ]);
  });

  it('says which partitions a fault is about, and how many more', () => {
    expect(
      faultInWords({ id: 1, atMillis: 1, kind: 'leaderLost', node: 3, count: 18, partitions: [0, 4] }),
    ).toBe('18 partitions (0, 4 and 16 more) lost the leader, node 3');
  });

  it('tells spans in two units, never too short', () => {
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
  it('are a column for each series, with nothing where nothing is known', () => {
    const samples = withSample(withSample(NO_SAMPLES, at(1)), at(2, { rates: null, times: null }));
    expect(samples.seconds).toEqual([1, 2]);
    expect(samples.rates[0]).toEqual([12.5, null]);
    expect(samples.times[1]).toEqual([4, null]);
  });

  it('are bounded, and begin anew when the clock steps back', () => {
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
