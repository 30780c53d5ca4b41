/**
 * Random histories: the network, the disks and the processes fail in every way, no guarantee breaks, and once the
 * faults end,
 * the group works again. The invariants are checked after every step (invariants.ts).
 */
import { describe, expect, it } from 'vitest';
import { Network } from './network.ts';
import { forEachSeed, someSeeds } from './seeded.ts';
import { Simulation, type SimulationOptions } from './simulation.ts';
import { LargerEstimateWins, NewestLeaderWins, WallClock } from './wrong-clocks.ts';

const STEPS = 4_000;

describe('random histories', () => {
  it.each([
    [1, 5],
    [2, 8],
    [3, 12],
    [5, 12],
  ])('of a group of %d keep every promise and end in progress', (nodes, seeds) => {
    forEachSeed(someSeeds(seeds, 3), (seed) => {
      const simulation = new Simulation({ nodes, seed });
      simulation.run(STEPS);
      simulation.healAndExpectProgress();
      expect(simulation.network.leader).toBeDefined();
    });
  });

  it('full of short-lived leaders keep every promise, too', () => {
    forEachSeed(someSeeds(15, 3), (seed) => {
      const simulation = new Simulation({ nodes: seed % 2 === 0 ? 3 : 5, seed, stormy: true });
      simulation.run(STEPS);
      simulation.healAndExpectProgress();
      expect(simulation.network.leader).toBeDefined();
    });
  });

  it('replay exactly from their seed', () => {
    const [first, second] = [42, 42].map((seed) => {
      const simulation = new Simulation({ nodes: 3, seed });
      simulation.run(STEPS);
      return simulation.network.sent;
    });
    expect(first).toEqual(second);
    expect(first?.length).toBeGreaterThan(100);
  });
});

describe('the simulation reads the disks themselves', () => {
  it('52: and notices a commit that no quorum has on disk, for any reason', () => {
    const network = new Network({ nodes: 3 });
    network.elect(1);
    network.isolate(1);
    const entry = network.propose(1, 'on one disk');
    const index = entry?.index ?? 0;
    // An acknowledgement that node 2 never gave.
    const forged = { type: 'appendResponse', from: 2, to: 1, term: 1, index } as const;
    expect(() =>
      network.act(1, (core) => core.step({ ...forged, rejected: false, hintIndex: 0, hintTerm: 0 })),
    ).toThrow(/durability/);
  });
});

/** The first seed whose history shows that group time ran ahead. */
function seedsUntilCaught(
  newClock: NonNullable<SimulationOptions['newClock']>,
  stormy: boolean,
): number | undefined {
  for (let seed = 1; seed <= 500; seed += 1) {
    const simulation = new Simulation({ nodes: seed % 2 === 0 ? 3 : 5, seed, stormy, newClock });
    try {
      simulation.run(STEPS);
    } catch (error) {
      if (error instanceof Error && error.message.includes('group clock')) return seed;
      throw error;
    }
  }
  return undefined;
}

describe('the simulation detects a wrong group clock', () => {
  it('each leader stamps by its own wall clock', () => {
    expect(seedsUntilCaught((monotonic, wall) => new WallClock(monotonic, wall), false)).toBeLessThan(10);
  });

  it('the larger estimate always wins', () => {
    expect(
      seedsUntilCaught((monotonic, wall) => new LargerEstimateWins(monotonic, wall), false),
    ).toBeLessThan(50);
  });

  it('the newest leader heard of wins, even if the log holds none of its entries', () => {
    expect(seedsUntilCaught((monotonic, wall) => new NewestLeaderWins(monotonic, wall), true)).toBeLessThan(
      200,
    );
  });
});
