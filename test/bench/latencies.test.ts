/** Tests the latency histogram: percentiles, merging and encoding. */
import { describe, expect, test } from 'vitest';
import { Latencies } from '../../bench/load/latencies.ts';

function recorded(millis: readonly number[]): Latencies {
  const latencies = new Latencies();
  for (const each of millis) latencies.record(each);
  return latencies;
}

/** The histogram keeps three digits. */
function expectAbout(value: number, expected: number): void {
  expect(Math.abs(value - expected)).toBeLessThanOrEqual(expected / 500);
}

describe('latencies', () => {
  test('are merged by their counts: a slow tenth stays a slow tenth', () => {
    const fast = recorded(Array.from({ length: 900 }, () => 1));
    fast.add(recorded(Array.from({ length: 100 }, () => 50)));
    expect(fast.count).toBe(1_000);
    expectAbout(fast.percentileMillis(50), 1);
    expectAbout(fast.percentileMillis(89.9), 1);
    expectAbout(fast.percentileMillis(90.1), 50);
    expectAbout(fast.percentileMillis(99.9), 50);
  });

  test('are the same after they were sent to another process', () => {
    const sent = recorded([0.001, 0.5, 3.25, 700, 12_000]);
    const received = Latencies.decode(sent.encode());
    expect(received.count).toBe(5);
    for (const percent of [0, 20, 40, 60, 80, 100])
      expect(received.percentileMillis(percent)).toBe(sent.percentileMillis(percent));
  });

  test('can be merged after they were received', () => {
    const sum = Latencies.decode(recorded([1]).encode());
    sum.add(Latencies.decode(recorded([1_000, 1_000]).encode()));
    expect(sum.count).toBe(3);
    expectAbout(sum.percentileMillis(100), 1_000);
  });

  test('keep the shortest and the longest within the bounds of the histogram', () => {
    const latencies = recorded([0, 3_600_000]);
    expectAbout(latencies.percentileMillis(0), 0.001);
    expectAbout(latencies.percentileMillis(100), 60_000);
  });

  test('have no percentile if nothing was measured', () => {
    expect(new Latencies().percentileMillis(50)).toBeNaN();
  });
});
