/**
 * Where copies lie when nodes have labels: judged by all rows that there could be, counted here from the labels alone, and of small
 * clusters by all placements.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32 } from '../../src/partition/hash.ts';
import { placementAfter } from '../../src/partition/labelled-placement.ts';
import { nextPlacement } from '../../src/partition/next-placement.ts';
import { type PlacementTable, ringPlacement, tableOf } from '../../src/partition/placement.ts';
import { ROUNDS } from '../raft/seeded.ts';
import {
  bestSharing,
  evenestLoads,
  loadsOf,
  type Labelled,
  movedBetween,
  sharingOf,
  zoneOf,
} from './all-placements.ts';

let hash: Hash32;

beforeAll(async () => {
  hash = await loadHash32();
});

type Change =
  | { readonly kind: 'join' | 'replace'; readonly at: number; readonly zone: number; readonly host: number }
  | { readonly kind: 'leave'; readonly at: number }
  | { readonly kind: 'label'; readonly at: number; readonly zone: number; readonly host: number };

/** 0: none. Few names, so that nodes share them. */
const zone = fc.nat(3);
const host = fc.nat(4);
const at = fc.nat(100);
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constantFrom('join' as const, 'replace' as const), at, zone, host }),
  fc.record({ kind: fc.constant('leave' as const), at }),
  fc.record({ kind: fc.constant('label' as const), at, zone, host }),
  fc.record({ kind: fc.constant('label' as const), at, zone, host }),
);

const history = fc.record({
  nodes: fc.array(fc.record({ zone, host }), { minLength: 1, maxLength: 7 }),
  copies: fc.constantFrom(1, 2, 3, 3, 3, 5),
  changes: fc.array(change, { minLength: 1, maxLength: 10 }),
});
type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

const NODES_MAX = 8;

function labelsOf(of: { readonly zone: number; readonly host: number }): Omit<Labelled, 'id'> {
  return {
    ...(of.zone > 0 && { zone: `z${of.zone}` }),
    ...(of.host > 0 && { host: `h${of.host}` }),
  };
}

interface Step {
  readonly before: readonly Labelled[];
  readonly after: readonly Labelled[];
  readonly table: PlacementTable;
  readonly next: PlacementTable;
  readonly copies: number;
}

/** Goes through a history, change by change. */
function replay({ nodes: drawn, copies: wanted, changes }: History, partitions: number): Step[] {
  const copies = Math.min(wanted, drawn.length);
  const ids = drawn.map((_, i) => i + 1);
  const ring = tableOf(ringPlacement(ids, partitions, copies, hash));
  let nodes: Labelled[] = drawn.map((labels, i) => ({ id: i + 1, ...labelsOf(labels) }));
  const unlabelled = ids.map((id) => ({ id }));
  let table = placementAfter({ before: unlabelled, table: ring, after: nodes, isFounding: true }, hash);
  let settled = table;
  let lastId = ids.length;
  const steps: Step[] = [{ before: unlabelled, after: nodes, table: ring, next: table, copies }];
  for (const each of changes) {
    const victim = nodes[each.at % nodes.length];
    let after = nodes;
    if (each.kind === 'join' && nodes.length < NODES_MAX)
      after = [...nodes, { id: (lastId += 1), ...labelsOf(each) }];
    if (each.kind === 'leave' && nodes.length > copies) after = nodes.filter((node) => node !== victim);
    if (each.kind === 'replace')
      after = [...nodes.filter((node) => node !== victim), { id: (lastId += 1), ...labelsOf(each) }];
    if (each.kind === 'label')
      after = nodes.map((node) => (node === victim ? { id: node.id, ...labelsOf(each) } : node));
    const next = placementAfter({ before: nodes, table, after, settled }, hash);
    steps.push({ before: nodes, after, table, next, copies });
    if (each.at % 3 > 0) settled = next;
    [nodes, table] = [after, next];
  }
  return steps;
}

/** One node came, went or is labelled otherwise, and no other stands elsewhere for that. */
function isOfOneNode(before: readonly Labelled[], after: readonly Labelled[]): boolean {
  const ids = [...new Set([...before, ...after].map(({ id }) => id))];
  return ids.filter((id) => standsAt(id, before) !== standsAt(id, after)).length <= 1;
}

function standsAt(id: number, nodes: readonly Labelled[]): string {
  const node = nodes.find((each) => each.id === id);
  return node === undefined ? 'nowhere' : `${node.host} in ${zoneOf(id, nodes)}`;
}

describe('copies on nodes with labels', () => {
  it('share as few hosts, then as few zones, as any choice of so many nodes, whatever came before', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        for (const { after, next, copies } of replay(drawn, 12)) {
          const best = bestSharing(after, copies);
          for (const row of next) {
            expect([row.length, new Set(row).size]).toEqual([copies, copies]);
            expect(row.every((id) => after.some((node) => node.id === id))).toBe(true);
            expect(sharingOf(row, after)).toEqual(best);
          }
        }
      }),
      { numRuns: 120 * ROUNDS },
    );
  });

  it('are held as evenly as rows that share so little can be', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        // All placements of more nodes would take minutes.
        const steps = replay(drawn, 4).filter(({ before, after }) => before !== after && after.length <= 5);
        for (const { after, next, copies } of steps.slice(-2)) {
          const most = Math.max(...loadsOf(next, after).values());
          // Loads of nodes without labels may differ by more: nothing moves for that alone.
          expect(most).toBeLessThanOrEqual(Math.max(...evenestLoads(after, copies, 4)) + 1);
        }
      }),
      { numRuns: 80 * ROUNDS },
    );
  });

  it('are held by nobody, in a cluster that is founded, who could hand one to a node with two less', () => {
    fc.assert(
      fc.property(history, fc.constantFrom(12, 48), ({ nodes: drawn, copies: wanted }, partitions) => {
        const [{ after, next }] = replay({ nodes: drawn, copies: wanted, changes: [] }, partitions) as [Step];
        const ids = after.map(({ id }) => id);
        const pairs = ids.flatMap((a, i) => ids.slice(i + 1).map((b) => String(sharingOf([a, b], after))));
        // Where labels tell no pair from another all is as the ring has it.
        fc.pre(new Set(pairs).size > 1);
        const loads = loadsOf(next, after);
        const handedOn = next.flatMap((row) =>
          row.flatMap((from) =>
            after
              .filter(({ id }) => !row.includes(id) && (loads.get(from) ?? 0) >= (loads.get(id) ?? 0) + 2)
              .map(({ id }) => row.map((node) => (node === from ? id : node)))
              .filter((other) => String(sharingOf(other, after)) === String(sharingOf(row, after))),
          ),
        );
        expect(handedOn).toEqual([]);
      }),
      { numRuns: 60 * ROUNDS },
    );
  });

  it('do not move where the change lets what was there be the best there is', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        for (const { before, after, table, next, copies } of replay(drawn, 12)) {
          const gone = new Set(
            before.filter(({ id }) => !after.some((node) => node.id === id)).map(({ id }) => id),
          );
          const best = bestSharing(after, copies);
          const mustMove = table.filter(
            (row) => row.some((id) => gone.has(id)) || String(sharingOf(row, after)) !== String(best),
          ).length;
          const part = Math.ceil((table.length * copies) / after.length);
          const tooMany = [...loadsOf(table, after).values()].map((load) => Math.max(0, load - part));
          const forLoads = Math.max(
            part,
            tooMany.reduce((sum, copy) => sum + copy, 0),
          );
          // One of each such row, and for the loads a part or what nodes have beyond theirs, and one for each.
          expect(movedBetween(table, next)).toBeLessThanOrEqual(mustMove + forLoads + after.length);
          if (!isOfOneNode(before, after)) continue;
          const each = next.map((row, i) => movedBetween([table[i] ?? []], [row]));
          expect(Math.max(...each)).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 120 * ROUNDS },
    );
  });

  it('are spread anew where the node that went said in which zone the host of another one is', () => {
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

  it('are held by a node, too, that replaces one that stood elsewhere', () => {
    const before = ['a', 'a', 'a', 'b', 'c'].map((zone, i) => ({ id: i + 1, zone }));
    const unlabelled = before.map(({ id }) => ({ id }));
    const ring = tableOf(ringPlacement([1, 2, 3, 4, 5], 64, 3, hash));
    const table = placementAfter({ before: unlabelled, table: ring, after: before }, hash);
    const after = [...before.slice(0, 4), { id: 20, zone: 'b' }];
    const next = placementAfter({ before, table, after, settled: table }, hash);
    const loads = loadsOf(next, after);
    // Half of each pair of zones: 128 copies for two and three nodes.
    for (const id of [4, 20]) expect(loads.get(id)).toBeGreaterThanOrEqual(30);
    for (const row of next) expect(sharingOf(row, after)).toEqual(bestSharing(after, 3));
  });

  it('are the same whoever computes it, in whatever order the nodes are listed', () => {
    const nodes = [1, 2, 3, 4, 5, 6].map((id) => ({ id, host: `h${id % 4}`, zone: `z${id % 2}` }));
    const unlabelled = nodes.map(({ id }) => ({ id }));
    const table = tableOf(ringPlacement([1, 2, 3, 4, 5, 6], 64, 3, hash));
    const next = placementAfter({ before: unlabelled, table, after: nodes }, hash);
    const other = placementAfter({ before: unlabelled.toReversed(), table, after: nodes.toReversed() }, hash);
    expect(other).toEqual(next);
    expect(table).toEqual(tableOf(ringPlacement([1, 2, 3, 4, 5, 6], 64, 3, hash)));
  });
});

const TELLING_NOTHING: readonly ((id: number) => Labelled)[] = [
  (id) => ({ id, zone: 'z' }),
  (id) => ({ id, host: `h${id}` }),
  (id) => ({ id }),
];

describe('nodes of which labels tell nothing', () => {
  it('are placed as before there were labels, byte for byte', () => {
    for (const partitions of [1, 16, 100]) {
      for (const labelled of TELLING_NOTHING) {
        const ids = [1, 2, 3, 4, 5];
        const table = tableOf(ringPlacement(ids, partitions, 3, hash));
        const nodes = ids.map(labelled);
        for (const [joins, leaves] of [
          [6, undefined],
          [undefined, 2],
          [6, 2],
        ] as const) {
          const after = [...nodes.filter(({ id }) => id !== leaves), ...(joins ? [labelled(joins)] : [])];
          expect(placementAfter({ before: nodes, table, after, settled: table }, hash)).toEqual(
            nextPlacement(table, ids, { joins, leaves, settled: table }, hash),
          );
        }
      }
    }
  });

  it('are not moved by a label that changes nothing of what they share', () => {
    const table = tableOf(ringPlacement([1, 2, 3, 4], 32, 3, hash));
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
  const table = tableOf(ringPlacement(ids, partitions, 3, hash));
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

  it('take a fourth node each and move no more than its share', () => {
    const table = founded(9, 256);
    const after = [...nodes(9), { id: 10, zone: 'z0' }];
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    expect(movedBetween(table, next)).toBe(256 / 4);
    expect(movedBetween(table, next)).toBe(next.filter((row) => row.includes(10)).length);
  });

  it('give what one node held that leaves to those of its zone, and nothing else moves', () => {
    const table = founded(9, 256);
    const after = nodes(9).filter(({ id }) => id !== 4);
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    const held = table.filter((row) => row.includes(4)).length;
    expect(movedBetween(table, next)).toBe(held);
    expect(loadsOf(next, after).get(1)).toBe(128);
  });

  it('replace one of them by one that stands there, which gets just that', () => {
    const table = founded(9, 64);
    const after = [...nodes(9).filter(({ id }) => id !== 4), { id: 10, zone: 'z0' }];
    const next = placementAfter({ before: nodes(9), table, after, settled: table }, hash);
    expect(next).toEqual(table.map((row) => row.map((id) => (id === 4 ? 10 : id))));
  });

  it('move little while they are labelled one after the other', () => {
    const ids = nodes(9).map(({ id }) => id);
    let table: PlacementTable = tableOf(ringPlacement(ids, 256, 3, hash));
    let before: Labelled[] = ids.map((id) => ({ id }));
    const moved = ids.map((id) => {
      const after = before.map((node) => (node.id === id ? { id, zone: `z${id % 3}` } : node));
      const next = placementAfter({ before, table, after, settled: table }, hash);
      const count = movedBetween(table, next);
      [before, table] = [after, next];
      return count;
    });
    // Nobody ever has to take what all hold: of 768 copies.
    expect(Math.max(...moved)).toBeLessThanOrEqual(256);
    expect(moved.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(768);
  });
});
