/** Tests the reported figures about answer times, disk, clock and memory. */
import { expect, it } from 'vitest';
import { NodePace } from '../../src/node/node-pace.ts';
import { RecentFigures } from '../../src/usage/recent-figures.ts';

const CORE = {
  clock: {
    estimates: () => [
      [2, 40],
      [3, -20],
      [4, 10],
    ],
  },
  capacity: { stateBytes: 10, stateBytesMax: 20 },
};

it('cover the last ten seconds, and are null without answers or writes', () => {
  let now = 0;
  const recent = new RecentFigures();
  const pace = new NodePace(recent, () => now);
  const core = CORE as unknown as Parameters<NodePace['of']>[0];
  recent.took(500);
  expect(pace.of(core).figures).toEqual({
    p99Millis: null,
    diskP99Millis: null,
    clockPpm: 10,
    stateBytes: 10,
    stateBytesMax: 20,
  });
  recent.took(2);
  pace.wrote(0.004);
  // Reports come more often than readings.
  now = 500;
  expect(pace.of(core).figures.p99Millis).toBeNull();
  now = 1_000;
  expect(pace.of(core).figures).toMatchObject({ p99Millis: 2, diskP99Millis: 4 });
  expect(pace.of(core).times.reduce((sum, count) => sum + count, 0)).toBe(1);
  for (now = 2_000; now <= 11_000; now += 1_000) pace.of(core);
  expect(pace.of(core).figures).toMatchObject({ p99Millis: null, diskP99Millis: null });
});

it('have no clock rate without comparisons', () => {
  const pace = new NodePace(new RecentFigures(), () => 0);
  const core = { ...CORE, clock: { estimates: () => [] } } as unknown as Parameters<NodePace['of']>[0];
  expect(pace.of(core).figures.clockPpm).toBeNull();
});
