/** Examples of the placement of nodes with labels. Random cases are in placement-random.test.ts. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32 } from '../../src/partition/hash.ts';
import { foundingPlacement, placementAfter, type PlacementTable } from '../../src/partition/placement.ts';
import { bestSharing, loadsOf, type Labelled, movedBetween, sharingOf } from './all-placements.ts';

let hash: Hash32;

beforeAll(async () => {
  hash = await loadHash32();
});

describe('copies on nodes with labels', () => {
  it("are spread again if the node that left named the zone of another node's host", () => {
    const nodes = [
      { id: 1 },
      { id: 2, host: 'h', zone: 'a' },
      { id: 3 },
      { id: 4, host: 'h', zone: 'b' },
      { id: 5, zone: 'b' },
    ];
    const table = Array.from({ length: 4 }, () => [4, 5]);
    const after = [...nodes.filter(({ id }) => id !== 2), { id: 6, host: 'h', zone: 'a' }];
    for (const row of placementAfter({ before: nodes, table, after }, hash))
      expect(sharingOf(row, after)).toEqual([0, 0]);
  });

  it('are also placed on a replacement with other labels', () => {
    const before = ['a', 'a', 'a', 'b', 'c'].map((zone, i) => ({ id: i + 1, zone }));
    const unlabelled = before.map(({ id }) => ({ id }));
    const ring = foundingPlacement([1, 2, 3, 4, 5], 64, 3, hash);
    const table = placementAfter({ before: unlabelled, table: ring, after: before }, hash);
    const after = [...before.slice(0, 4), { id: 20, zone: 'b' }];
    const next = placementAfter({ before, table, after, settled: table }, hash);
    const loads = loadsOf(next, after);
    // Half of each pair of zones: 128 copies for two and three nodes.
    for (const id of [4, 20]) expect(loads.get(id)).toBeGreaterThanOrEqual(30);
    for (const row of next) expect(sharingOf(row, after)).toEqual(bestSharing(after, 3));
  });

  it('do not depend on the node that computes them or on the order of the nodes', () => {
    const nodes = [1, 2, 3, 4, 5, 6].map((id) => ({ id, host: `h${id % 4}`, zone: `z${id % 2}` }));
    const unlabelled = nodes.map(({ id }) => ({ id }));
    const table = foundingPlacement([1, 2, 3, 4, 5, 6], 64, 3, hash);
    const next = placementAfter({ before: unlabelled, table, after: nodes }, hash);
    const other = placementAfter({ before: unlabelled.toReversed(), table, after: nodes.toReversed() }, hash);
    expect(other).toEqual(next);
    expect(table).toEqual(foundingPlacement([1, 2, 3, 4, 5, 6], 64, 3, hash));
  });
});

const REPORTING_NOTHING: readonly ((id: number) => Labelled)[] = [
  (id) => ({ id, zone: 'z' }),
  (id) => ({ id, host: `h${id}` }),
  (id) => ({ id }),
];

describe('nodes whose labels make no difference', () => {
  it('are placed as nodes without labels, byte for byte', () => {
    for (const partitions of [1, 16, 100]) {
      for (const labelled of REPORTING_NOTHING) {
        const ids = [1, 2, 3, 4, 5];
        const table = foundingPlacement(ids, partitions, 3, hash);
        const nodes = ids.map(labelled);
        for (const [joins, leaves] of [
          [6, undefined],
          [undefined, 2],
          [6, 2],
        ] as const) {
          const after = [...nodes.filter(({ id }) => id !== leaves), ...(joins ? [labelled(joins)] : [])];
          const bare = { before: nodes.map(({ id }) => ({ id })), after: after.map(({ id }) => ({ id })) };
          expect(placementAfter({ before: nodes, table, after, settled: table }, hash)).toEqual(
            placementAfter({ ...bare, table, settled: table }, hash),
          );
        }
      }
    }
  });

  it('lose no copies through a label that does not change which hosts and zones are equal', () => {
    const table = foundingPlacement([1, 2, 3, 4], 32, 3, hash);
    const before = [1, 2, 3, 4].map((id) => ({ id }));
    const after = before.map(({ id }) => ({ id, host: `h${id}`, zone: 'z' }));
    expect(placementAfter({ before, table, after }, hash)).toBe(table);
  });
});

function nodes(count: number): Labelled[] {
  return Array.from({ length: count }, (_, i) => ({ id: i + 1, zone: `z${i % 3}` }));
}

function founded(count: number, partitions: number): PlacementTable {
  const ids = nodes(count).map(({ id }) => id);
  const table = foundingPlacement(ids, partitions, 3, hash);
  return placementAfter({ before: ids.map((id) => ({ id })), table, after: nodes(count) }, hash);
}

describe('nodes in three zones', () => {
  it.each([9, 100, 256, 1_024])(
    'hold and lead their part of %i partitions, each a copy in every zone',
    (partitions) => {
      const table = founded(9, partitions);
      const part = (partitions * 3) / 9;
      const { held, led } = {
        held: [...loadsOf(table, nodes(9)).values()],
        led: nodes(9).map(({ id }) => table.filter(([leader]) => leader === id).length),
      };
      expect(Math.max(...held)).toBeLessThanOrEqual(Math.ceil(part));
      expect(Math.max(...led)).toBeLessThanOrEqual(Math.ceil(partitions / 9) + 1);
      const byZone = [0, 1, 2].map((z) => led.filter((_, i) => i % 3 === z).reduce((a, b) => a + b, 0));
      expect(Math.max(...byZone) - Math.min(...byZone)).toBeLessThanOrEqual(3);
    },
  );

  it('can each get a fourth node, and no more than its part moves', () => {
    const table = founded(9, 256);
    const after = [...nodes(9), { id: 10, zone: 'z0' }];
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    expect(movedBetween(table, next)).toBe(256 / 4);
    expect(movedBetween(table, next)).toBe(next.filter((row) => row.includes(10)).length);
  });

  it('give the copies of a leaving node to others in its zone, and nothing else moves', () => {
    const table = founded(9, 256);
    const after = nodes(9).filter(({ id }) => id !== 4);
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    const held = table.filter((row) => row.includes(4)).length;
    expect(movedBetween(table, next)).toBe(held);
    expect(loadsOf(next, after).get(1)).toBe(128);
  });

  it('replace a node by one in the same zone, which gets exactly its copies', () => {
    const table = founded(9, 64);
    const after = [...nodes(9).filter(({ id }) => id !== 4), { id: 10, zone: 'z0' }];
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    expect(next).toEqual(table.map((row) => row.map((id) => (id === 4 ? 10 : id))));
  });

  it('move few copies while they are labelled one after the other', () => {
    const ids = nodes(9).map(({ id }) => id);
    let table: PlacementTable = foundingPlacement(ids, 256, 3, hash);
    let before: Labelled[] = ids.map((id) => ({ id }));
    const moved = ids.map((id) => {
      const after = before.map((node) => (node.id === id ? { id, zone: `z${id % 3}` } : node));
      const next = placementAfter({ before, table, after, settled: table }, hash);
      const count = movedBetween(table, next);
      [before, table] = [after, next];
      return count;
    });
    // No node ever has to take all 768 copies.
    expect(Math.max(...moved)).toBeLessThanOrEqual(256);
    expect(moved.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(768);
  });
});
