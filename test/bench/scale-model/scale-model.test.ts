/** Tests the simulation of the scale model: machines, clusters and forecasts. */
import { describe, expect, it } from 'vitest';
import { calibrate, foretell, type MeasuredRate } from '../../../bench/scale-model/calibrate.ts';
import { closedLoopRate, openLoop } from '../../../bench/scale-model/load.ts';
import { Machine, Timeline } from '../../../bench/scale-model/machine.ts';
import { PROFILED, type ServiceTimes, slowed } from '../../../bench/scale-model/service-times.ts';
import type { ClusterShape } from '../../../bench/scale-model/simulated-cluster.ts';
import { reachingOf } from '../../../bench/scale-model/zipf-users.ts';

const SHAPE: ClusterShape = {
  nodes: 3,
  partitionsPerNode: 2,
  cores: 2,
  nodesPerMachine: 3,
  times: PROFILED,
  seed: 3,
};
const FREE = Object.fromEntries(Object.keys(PROFILED).map((name) => [name, 0])) as unknown as ServiceTimes;
/** Simulated time. */
const SECONDS = 0.05;
const OPEN = { requestsPerSecond: 20_000, perCall: 4, toLeaders: 0.5 };

describe('a machine', () => {
  it('does as many tasks at once as it has cores, and the rest in order', () => {
    const timeline = new Timeline();
    const machine = new Machine(timeline, 2);
    const done: [string, number][] = [];
    for (const [name, micros] of [
      ['a', 30],
      ['b', 10],
      ['c', 10],
      ['d', 10],
    ] as const)
      machine.run(micros, () => done.push([name, timeline.nowMicros]));
    timeline.runUntil(100);
    expect(done).toEqual([
      ['b', 10],
      ['c', 20],
      ['a', 30],
      ['d', 30],
    ]);
    expect(machine.busyMicros).toBe(60);
  });
});

describe('a simulated cluster', () => {
  it('is bound only by its cores if only copies have a cost: three of 10 us for each grant', () => {
    const times = { ...FREE, copy: 10, network: 5 };
    const rate = closedLoopRate({ ...SHAPE, times }, { connections: 48, pipeline: 16 }, 0.2);
    expect(rate).toBeGreaterThan(0.95 * (2 / 30e-6));
    expect(rate).toBeLessThan(1.05 * (2 / 30e-6));
  });

  it('answers no sooner than the delays of frames and disks allow', () => {
    const times = { ...FREE, network: 1_000, sync: 4_000 };
    const shape = { ...SHAPE, times, nodesPerMachine: 1 };
    const load = { requestsPerSecond: 300, perCall: 1, toLeaders: 1 };
    const { p50Millis } = openLoop(shape, load, { seconds: 2, trouble: 'none' });
    // The path: to the leader, to a follower and its disk and back, and back to the client. A write may also have to
    // wait.
    expect(p50Millis).toBeGreaterThanOrEqual(8);
    expect(p50Millis).toBeLessThan(14);
  });

  it('gives the same result for the same seed', () => {
    const [one, other] = [0, 1].map(() => openLoop(SHAPE, OPEN, { seconds: 0.2, trouble: 'death' }));
    expect(one).toEqual(other);
  });

  it('answers slower while a node dies, and keeps answering', () => {
    const shape = { ...SHAPE, nodes: 5, nodesPerMachine: 1 };
    const calm = openLoop(shape, OPEN, { seconds: 0.5, trouble: 'none' });
    const death = openLoop(shape, OPEN, { seconds: 0.5, trouble: 'death' });
    expect(death.p99Millis).toBeGreaterThan(5 * calm.p99Millis);
    expect(death.unansweredFraction).toBeLessThan(0.01);
  });
});

describe('service times', () => {
  it('can be calculated from the rates that they cause', () => {
    const slowness = { calls: 1.5, requests: 0.8, rounds: 2 };
    const rates = [1, 16, 64].map((pipeline): MeasuredRate => {
      const { nodes, partitionsPerNode, cores } = SHAPE;
      const shape = { ...SHAPE, times: slowed(slowness), seed: 1 };
      const perSecond = closedLoopRate(shape, { connections: 48, pipeline }, SECONDS);
      return { nodes, partitionsPerNode, cores, connections: 48, pipeline, perSecond };
    });
    const found = calibrate(rates, SECONDS);
    for (const rate of rates) expect(Math.abs(foretell(rate, found, SECONDS).error)).toBeLessThan(0.05);
  });
});

describe('users by Zipf', () => {
  it('have the rates of all users together, granted and denied', () => {
    const load = { users: 1_000, exponent: 1, limitPerSecond: 10, waitSeconds: 1 };
    const reaching = reachingOf(1_000, load);
    const harmonic = Array.from({ length: 1_000 }, (_, i) => 1 / (i + 1)).reduce((a, b) => a + b);
    expect(reaching.hottestUserPerSecond).toBeCloseTo(1_000 / harmonic, 6);
    const granted = Array.from({ length: 1_000 }, (_, i) => Math.min(10, 1_000 / (i + 1) / harmonic));
    expect(reaching.grantsPerSecond).toBeCloseTo(
      granted.reduce((a, b) => a + b),
      6,
    );
    expect(reaching.denialsPerSecond).toBeGreaterThan(0);
    expect(reaching.denialsPerSecond).toBeLessThanOrEqual(14);
  });

  it('have the same sum beyond a hundred thousand as if added one by one', () => {
    const load = { users: 400_000, exponent: 0.9, limitPerSecond: 1e9, waitSeconds: 1 };
    expect(reachingOf(5_000, load).grantsPerSecond).toBeCloseTo(5_000, 0);
  });
});
