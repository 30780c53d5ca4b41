/** Tests medians, ranges and ratios of several rounds. */
import { describe, expect, test } from 'vitest';
import { fitRoundCost } from '../../bench/micro/cost-model.ts';
import { median, ratiosPerRound, spreadOf } from '../../bench/statistics.ts';

describe('medians', () => {
  test('are the value in the middle, or the mean of the two', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([10, 1, 3, 2])).toBe(2.5);
    expect(median([100, 9])).toBe(54.5);
    expect(median([])).toBeNaN();
  });

  test('do not change their input', () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('spreads', () => {
  test('have median, minimum and maximum', () => {
    expect(spreadOf([4, undefined, 1, Number.NaN, 2])).toEqual({ median: 2, min: 1, max: 4 });
  });

  test('are undefined without values', () => {
    expect(spreadOf([undefined, Number.NaN])).toBeUndefined();
  });
});

describe('ratios', () => {
  test('are taken within a round: a slow round is slow for both', () => {
    const of = new Map([
      [1, 10],
      [2, 100],
      [3, 30],
    ]);
    const to = new Map([
      [1, 20],
      [2, 200],
      [3, 10],
    ]);
    expect(ratiosPerRound(of, to)).toEqual({ median: 0.5, min: 0.5, max: 3 });
  });

  test('omit rounds that one of them lacks, or whose divisor is 0', () => {
    const of = new Map([
      [1, 10],
      [2, 10],
      [3, 10],
    ]);
    expect(
      ratiosPerRound(
        of,
        new Map([
          [2, 5],
          [3, 0],
        ]),
      ),
    ).toEqual({ median: 2, min: 2, max: 2 });
    expect(ratiosPerRound(of, new Map())).toBeUndefined();
  });
});

describe('the cost of a round', () => {
  const sizes = [1, 4, 16].flatMap((groups) =>
    [1, 8, 64].map((requestsPerGroup) => ({ groups, requestsPerGroup })),
  );

  test('is split into the costs of a round, a group and a request', () => {
    const rounds = sizes.map((size) => ({
      ...size,
      micros: 30 + 5 * size.groups + 0.8 * size.groups * size.requestsPerGroup,
    }));
    const cost = fitRoundCost(rounds);
    expect(cost.perRoundMicros).toBeCloseTo(30, 6);
    expect(cost.perGroupMicros).toBeCloseTo(5, 6);
    expect(cost.perRequestMicros).toBeCloseTo(0.8, 6);
  });

  test('is unknown if all rounds are alike', () => {
    const alike = { groups: 2, requestsPerGroup: 4, micros: 10 };
    expect(() => fitRoundCost([alike, alike, alike])).toThrow(RangeError);
  });
});
