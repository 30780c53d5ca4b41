/** UTC is the time that a majority of the wall clocks have reached. */
import { describe, expect, it } from 'vitest';
import { WallClocks } from '../../src/clock/wall-clocks.ts';

const WALL = 1_800_000_000_000;

/** UTC according to node 1, from its own clock and the others' readings at 0 on its monotonic clock. */
function utcOf(own: number, others: readonly (number | undefined)[], nowMillis = 0): number | undefined {
  const walls = new WallClocks();
  for (const [i, wallMillis] of others.entries())
    if (wallMillis !== undefined) walls.add(i + 2, wallMillis, 0);
  const nodes = [own, ...others].map((_, i) => i + 1);
  return walls.utcMillis(nodes, { nodeId: 1, wallMillis: own }, nowMillis);
}

describe('wall clocks', () => {
  it.each([
    ['one node uses its own clock', 5, [], 5],
    ['of two the later one is no majority', 5, [9], 5],
    ['a single fast one of three is no majority', 5, [9_000_000, 7], 7],
    ['its own may be the fast one', 9_000_000, [5, 7], 7],
    ['two fast ones of three are a majority', 5, [9, 8], 8],
    ['three of five are a majority', 5, [1, 2, 3, 4], 3],
    ['two of four are no majority', 9, [9, 1, 2], 2],
  ])('%s', (_, own, others, expected) => {
    expect(
      utcOf(
        WALL + own,
        others.map((millis) => WALL + millis),
      ),
    ).toBe(WALL + expected);
  });

  it('give no time while fewer than a majority of all nodes are heard', () => {
    expect(utcOf(WALL, [WALL, undefined, undefined])).toBeUndefined();
    expect(utcOf(WALL, [WALL, undefined])).toBe(WALL);
  });

  it('are assumed to run on after a reading, which is forgotten after ten seconds', () => {
    expect(utcOf(WALL + 90_000, [WALL, WALL - 5], 10_000)).toBe(WALL + 10_000);
    expect(utcOf(WALL + 90_000, [WALL, WALL - 5], 10_001)).toBeUndefined();
  });

  it('of nodes that left the cluster do not count', () => {
    const walls = new WallClocks();
    for (const node of [2, 3]) walls.add(node, WALL + 1_000, 0);
    const own = { nodeId: 1, wallMillis: WALL };
    expect(walls.utcMillis([1, 2, 3], own, 0)).toBe(WALL + 1_000);
    expect(walls.utcMillis([1, 2, 4], own, 0)).toBe(WALL);
    expect(walls.utcMillis([1, 2, 3], own, 0)).toBe(WALL);
  });
});
