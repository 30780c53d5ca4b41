/**
 * The worlds that seeds give: each leaves most features out, a few have nearly all, and a requested theme is in all of
 * them.
 */
import { describe, expect, it } from 'vitest';
import { drawFeatures, FEATURES } from './features.ts';
import { drawFaults, drawKind, FAULTS, KINDS, type Kind } from './kinds.ts';
import { Random } from './random.ts';

const SEEDS = Array.from({ length: 2_000 }, (_, seed) => seed);

function drawn<T>(draw: (random: Random) => T): readonly T[] {
  return SEEDS.map((seed) => draw(new Random(seed)));
}

/** The fraction of the draws that have it. */
function fraction<T>(draws: readonly ReadonlySet<T>[], one: T): number {
  return draws.filter((each) => each.has(one)).length / draws.length;
}

describe('the worlds of seeds', () => {
  it('are of every kind, and few of them have too little room', () => {
    const kinds = drawn(drawKind);
    expect(new Set(kinds)).toEqual(new Set(KINDS));
    expect(kinds.filter((kind) => kind === 'crowded').length / kinds.length).toBeLessThan(0.1);
  });

  it('have each feature now and then, most of them in less than half', () => {
    const draws = drawn((random) => drawFeatures(random, 'usual', []));
    const fractions = FEATURES.map((feature) => fraction(draws, feature));
    expect(fractions.filter((one) => one === 0)).toEqual([]);
    expect(fractions.filter((one) => one > 0.5).length).toBeLessThan(FEATURES.length / 10);
    expect(fraction(draws, 'smallStates')).toBeLessThan(0.05);
  });

  it('have each fault now and then, most of them in far less than half, and a few all', () => {
    const draws = drawn((random) => new Set(drawFaults(random, 'usual', [])));
    const fractions = FAULTS.map((fault) => fraction(draws, fault));
    expect(fractions.filter((one) => one === 0)).toEqual([]);
    expect(fractions.filter((one) => one > 0.25).length).toBeLessThan(FAULTS.length / 10);
    expect(draws.filter(({ size }) => size === FAULTS.length).length).toBeGreaterThan(0);
  });

  it.each(KINDS)('of the kind %s have the requested features and faults beside their own', (kind: Kind) => {
    for (const seed of SEEDS.slice(0, 50)) {
      const usual = drawFaults(new Random(seed), kind, []);
      const faults = drawFaults(new Random(seed), kind, ['pause', 'tornBatch']);
      expect(faults).toEqual(expect.arrayContaining([...usual, 'pause', 'tornBatch']));
      const features = drawFeatures(new Random(seed), kind, ['documents', 'labels']);
      const without = drawFeatures(new Random(seed), kind, []);
      expect([...features]).toEqual(expect.arrayContaining([...without, 'documents', 'labels']));
    }
  });

  it('of the kind calm have no faults, and those of the kind far-behind have the fault that they need', () => {
    for (const seed of SEEDS.slice(0, 50)) {
      expect(drawFaults(new Random(seed), 'calm', [])).toEqual([]);
      expect(drawFaults(new Random(seed), 'far-behind', [])).toContain('longSuffix');
    }
  });
});
