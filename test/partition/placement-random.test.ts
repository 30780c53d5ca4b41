/**
 * Placements after random changes of nodes with and without labels. They are compared with all possible rows, counted
 * here from the labels alone, and for small clusters with all placements.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32 } from '../../src/partition/hash.ts';
import { foundingPlacement, placementAfter, type PlacementTable } from '../../src/partition/placement.ts';
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

/** 0: no label. Few names, so that several nodes have the same. */
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

/** Returns the steps of a history, one for each change. */
function replay({ nodes: drawn, copies: wanted, changes }: History, partitions: number): Step[] {
  const copies = Math.min(wanted, drawn.length);
  const ids = drawn.map((_, i) => i + 1);
  const ring = foundingPlacement(ids, partitions, copies, hash);
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

/** True if one node joined, left or got other labels, and no other node's relations changed. */
function isOfOneNode(before: readonly Labelled[], after: readonly Labelled[]): boolean {
  const ids = [...new Set([...before, ...after].map(({ id }) => id))];
  return ids.filter((id) => locationOf(id, before) !== locationOf(id, after)).length <= 1;
}

function difference(some: readonly Labelled[], others: readonly Labelled[]): number[] {
  return some.map(({ id }) => id).filter((id) => !others.some((other) => other.id === id));
}

function locationOf(id: number, nodes: readonly Labelled[]): string {
  const node = nodes.find((each) => each.id === id);
  return node === undefined ? 'nowhere' : `${node.host} in ${zoneOf(id, nodes)}`;
}

function checkLeft(table: PlacementTable, next: PlacementTable, gone: readonly number[]): void {
  const moved = next.map((row, i) => movedBetween([table[i] ?? []], [row]));
  expect(moved).toEqual(table.map((row) => row.filter((id) => gone.includes(id)).length));
}

/** A copy may move to a node that did not change if the row could not be spread as well otherwise. */
function checkJoined(before: ReadonlyMap<number, number>, after: ReadonlyMap<number, number>): void {
  expect([...after].filter(([id, load]) => load > (before.get(id) ?? 0))).toEqual([]);
}

describe('copies on nodes with labels', () => {
  it('have as few hosts, then as few zones in common as any choice of nodes allows, after any history', () => {
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

  it('are spread over the nodes as evenly as such rows allow', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        // All placements of more nodes would take minutes.
        const steps = replay(drawn, 4).filter(({ before, after }) => before !== after && after.length <= 5);
        for (const { after, next, copies } of steps.slice(-2)) {
          const most = Math.max(...loadsOf(next, after).values());
          // The loads of nodes without labels may differ more, because nothing moves just for that.
          expect(most).toBeLessThanOrEqual(Math.max(...evenestLoads(after, copies, 4)) + 1);
        }
      }),
      { numRuns: 80 * ROUNDS },
    );
  });

  it('are even in a new cluster: no node could give one to a node that has two fewer', () => {
    fc.assert(
      fc.property(history, fc.constantFrom(12, 48), ({ nodes: drawn, copies: wanted }, partitions) => {
        const [{ after, next }] = replay({ nodes: drawn, copies: wanted, changes: [] }, partitions) as [Step];
        const ids = after.map(({ id }) => id);
        const pairs = ids.flatMap((a, i) => ids.slice(i + 1).map((b) => String(sharingOf([a, b], after))));
        // If labels distinguish no pair of nodes, everything is as on the ring.
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

  it('do not move if they are still optimal after the change', () => {
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
          // One copy of each such row, and for the loads a node's part or the copies beyond it, and one for each.
          expect(movedBetween(table, next)).toBeLessThanOrEqual(mustMove + forLoads + after.length);
          if (!isOfOneNode(before, after)) continue;
          const each = next.map((row, i) => movedBetween([table[i] ?? []], [row]));
          expect(Math.max(...each)).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 120 * ROUNDS },
    );
  });

  it("move only for a leaving node's copies and to a joining node, unless labels change", () => {
    fc.assert(
      fc.property(history, (drawn) => {
        for (const { before, after, table, next } of replay(drawn, 24)) {
          const [came, gone] = [difference(after, before), difference(before, after)];
          const others = after.filter(({ id }) => !came.includes(id));
          if (came.length + gone.length !== 1) continue;
          if (others.some(({ id }) => locationOf(id, before) !== locationOf(id, after))) continue;
          if (gone.length > 0) checkLeft(table, next, gone);
          else checkJoined(loadsOf(table, others), loadsOf(next, others));
        }
      }),
      { numRuns: 120 * ROUNDS },
    );
  });

  it('are given to a joining node until no possible giver holds two more', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        for (const { before, after, table, next } of replay(drawn, 24)) {
          const [joined] = difference(after, before);
          if (joined === undefined || difference(before, after).length > 0) continue;
          const loads = loadsOf(next, after);
          const few = loads.get(joined) ?? 0;
          const stayed = next.filter((row, i) => movedBetween([table[i] ?? []], [row]) === 0);
          const couldGive = stayed.flatMap((row) =>
            row
              .filter((id) => (loads.get(id) ?? 0) >= few + 2)
              .map((id) => row.map((node) => (node === id ? joined : node)))
              .filter((other) => String(sharingOf(other, after)) === String(sharingOf(row, after))),
          );
          expect(couldGive).toEqual([]);
        }
      }),
      { numRuns: 120 * ROUNDS },
    );
  });

  it('are not led by a node that leads two more than another node with the same partition', () => {
    fc.assert(
      fc.property(history, (drawn) => {
        for (const { before, after, next } of replay(drawn, 24)) {
          // A replacement leads the partitions that the other node led.
          if (before === after || difference(before, after).length > 0) continue;
          const led = (node: number): number => next.filter(([leader]) => leader === node).length;
          const uneven = next.filter((row) => row.some((node) => led(row[0] ?? 0) >= led(node) + 2));
          expect(uneven).toEqual([]);
        }
      }),
      { numRuns: 60 * ROUNDS },
    );
  });
});
