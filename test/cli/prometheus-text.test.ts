/** Tests how commands parse `/metrics` and compute differences between two readings. */
import { describe, expect, it } from 'vitest';
import { growth, quantile, Readings } from '../../src/cli/prometheus-text.ts';

const TEXT = `# HELP a_total Some.
# TYPE a_total counter
a_total{rule="x",outcome="allowed"} 3
a_total{rule="y \\"q\\", z",outcome="allowed"} 4
a_total{rule="x",outcome="denied"} 5
b 1.5e-3
c +Inf
not a line
d{le="+Inf"} NaN
`;

describe('the text of Prometheus', () => {
  it('is read by name and label', () => {
    const readings = new Readings(TEXT);
    expect(readings.value('b')).toBe(0.0015);
    expect(readings.value('c')).toBe(Infinity);
    expect(readings.value('d')).toBeUndefined();
    expect(readings.series('a_total').map(({ labels }) => labels['rule'])).toEqual([
      'x',
      'y \\"q\\", z',
      'x',
    ]);
    expect([...readings.sumBy('a_total', 'outcome')]).toEqual([
      ['allowed', 7],
      ['denied', 5],
    ]);
    expect([...readings.sumBy('b', 'outcome')]).toEqual([['', 0.0015]]);
  });
});

describe('the difference of two readings', () => {
  it('is the growth of each counter, or its whole value if its node restarted', () => {
    const before = new Map([
      ['a', 5],
      ['b', 9],
    ]);
    const after = new Map([
      ['a', 7],
      ['b', 2],
      ['c', 1],
    ]);
    expect([...growth(before, after)]).toEqual([
      ['a', 2],
      ['b', 2],
      ['c', 1],
    ]);
  });

  it('has quantiles, as bounds of the buckets', () => {
    const buckets = new Map([
      ['0.01', 50],
      ['0.1', 98],
      ['+Inf', 100],
      ['0.5', 99],
    ]);
    expect([
      quantile(0.5, buckets),
      quantile(0.98, buckets),
      quantile(0.99, buckets),
      quantile(1, buckets),
    ]).toEqual([0.01, 0.1, 0.5, Infinity]);
    expect(quantile(0.5, new Map())).toBeUndefined();
    expect(quantile(0.5, new Map([['+Inf', 0]]))).toBeUndefined();
  });
});
