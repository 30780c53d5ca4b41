/** The placement of partitions on nodes without labels. */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32 } from '../../src/partition/hash.ts';
import {
  foundingPlacement,
  groupOfPartition,
  placementAfter,
  type PlacementTable,
  Ring,
} from '../../src/partition/placement.ts';
import { ROUNDS } from '../raft/seeded.ts';
import { Random } from '../sim/random.ts';

let hash: Hash32;

beforeAll(async () => {
  hash = await loadHash32();
});

function nodesTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

function place(nodeCount: number, partitions: number, replicas: number): PlacementTable {
  return foundingPlacement(nodesTo(nodeCount), partitions, replicas, hash);
}

interface Loads {
  readonly held: number[];
  readonly led: number[];
}

/** How many partitions each node holds and leads. */
function loadsOf(table: readonly (readonly number[])[], nodeCount: number): Loads {
  const nodes = nodesTo(nodeCount);
  return {
    held: nodes.map((node) => table.filter((replicas) => replicas.includes(node)).length),
    led: nodes.map((node) => table.filter((replicas) => replicas[0] === node).length),
  };
}

const PARTITION_COUNTS = [1, 2, 3, 5, 16, 17, 64, 100, 256, 1_024];

interface Change {
  readonly joins?: number | undefined;
  readonly leaves?: number | undefined;
  readonly settled?: PlacementTable;
}

/** For nodes without labels. */
function nextPlacement(table: PlacementTable, nodes: readonly number[], change: Change): PlacementTable {
  const { joins, leaves, settled } = change;
  const before = nodes.map((id) => ({ id }));
  const after = before.filter(({ id }) => id !== leaves).concat(joins === undefined ? [] : [{ id: joins }]);
  return placementAfter({ before, table, after, settled }, hash);
}

describe('a placement', () => {
  it('gives every partition as many distinct nodes as there are copies', () => {
    for (let nodeCount = 1; nodeCount <= 8; nodeCount += 1) {
      for (let replicas = 1; replicas <= 7; replicas += 1) {
        const table = place(nodeCount, 64, replicas);
        const sizes = table.map((row) => new Set(row.filter((node) => node >= 1 && node <= nodeCount)).size);
        expect(sizes).toEqual(table.map((row) => row.length));
        expect(new Set(sizes)).toEqual(new Set([Math.min(nodeCount, replicas)]));
      }
    }
  });

  it('does not depend on the node that computes it or on the order of the nodes', async () => {
    const otherHash = await loadHash32();
    const nodes = [4, 9, 2, 31, 7];
    const table = foundingPlacement(nodes, 128, 3, hash);
    for (const same of [nodes.toReversed(), nodes.toSorted((a, b) => a - b)])
      expect(foundingPlacement(same, 128, 3, otherHash)).toEqual(table);
  });

  it('of three nodes never changes', () => {
    // Each node computes the placement itself when a cluster is created, so a change here would split a running
    // cluster.
    expect(place(3, 16, 3).map((replicas) => replicas[0])).toEqual(LEADERS_OF_16);
  });

  it('on one node is that node', () => {
    expect(place(1, 4, 3)).toEqual([[1], [1], [1], [1]]);
  });

  it('needs a node', () => {
    expect(() => foundingPlacement([], 4, 3, hash)).toThrow('placement needs at least one node');
  });

  it('has no row for group 0', () => {
    expect([groupOfPartition(0), groupOfPartition(15)]).toEqual([1, 16]);
  });
});

describe('the load of a node', () => {
  it.each(PARTITION_COUNTS)(
    'of three with three copies is even: each holds all %i partitions, and none leads more than its part',
    (partitions) => {
      const { held, led } = loadsOf(place(3, partitions, 3), 3);
      expect(held).toEqual([partitions, partitions, partitions]);
      expect(Math.max(...led)).toBeLessThanOrEqual(Math.ceil(partitions / 3));
    },
  );

  it('is its part, rounded, for any number of nodes, partitions and copies', () => {
    for (let nodeCount = 1; nodeCount <= 9; nodeCount += 1) {
      for (let replicas = 1; replicas <= Math.min(7, nodeCount); replicas += 1) {
        for (const partitions of PARTITION_COUNTS) {
          const { held, led } = loadsOf(place(nodeCount, partitions, replicas), nodeCount);
          const gaps = [held, led].map((loads) => Math.max(...loads) - Math.min(...loads));
          const what = { nodeCount, replicas, partitions };
          expect({ ...what, isEven: gaps.every((gap) => gap <= 1) }).toEqual({ ...what, isEven: true });
        }
      }
    }
  });
});

describe('a change of the nodes', () => {
  it.each([6, 10, 16, 17, 64, 100, 256, 1_024])(
    'moves no more of %i partitions than necessary, and leaves the loads even',
    (partitions) => {
      for (const seed of seeds(partitions > 100 ? 2 : 8)) {
        try {
          expect(changeManyTimes(new Random(seed), partitions)).toBe(CHANGES);
        } catch (error) {
          throw new Error(`replay with PLACEMENT_SEED=${seed}`, { cause: error });
        }
      }
    },
  );

  it('does not depend on the order of the nodes', () => {
    const before = place(5, 64, 3);
    for (const change of [{ joins: 9 }, { leaves: 2 }, { joins: 9, leaves: 2 }]) {
      const after = nextPlacement(before, nodesTo(5), change);
      expect(nextPlacement(before, nodesTo(5).toReversed(), change)).toEqual(after);
    }
  });

  it('follows the ring: a joining node takes partitions just before it, a leaving node gives its own to the next one', () => {
    const before = place(6, 64, 3);
    const order = (nodeCount: number, partition: number): number[] =>
      new Ring(nodesTo(nodeCount), hash).orderOf(partition).map((at) => at + 1);
    const joined = nextPlacement(before, nodesTo(6), { joins: 7 });
    const rank = (partition: number): number => order(7, partition).indexOf(7);
    const all = [...joined.keys()];
    const taken = all.filter((partition) => joined[partition]?.includes(7));
    expect(mean(taken.map(rank))).toBeLessThan(mean(all.map(rank)) * 0.8);
    const left = nextPlacement(before, nodesTo(6), { leaves: 6 });
    const given = all.filter((partition) => before[partition]?.includes(6));
    const isNext = (partition: number): boolean => {
      const [next] = order(5, partition).filter((node) => before[partition]?.includes(node) === false);
      return next !== undefined && left[partition]?.includes(next) === true;
    };
    // Bounded loads move some copies further along the ring.
    expect(given.filter(isNext).length).toBeGreaterThan(given.length / 2);
  });

  it('that is reverted before anything has moved moves nothing', () => {
    for (const partitions of [16, 64, 1_024]) {
      const settled = place(5, partitions, 3);
      const joined = nextPlacement(settled, nodesTo(5), { joins: 6 });
      const after = nextPlacement(joined, nodesTo(6), { leaves: 6, settled });
      expect(after.map((row) => new Set(row))).toEqual(settled.map((row) => new Set(row)));
      // And the leadership of only a few moves.
      const led = after.filter(([leader], i) => leader !== settled[i]?.[0]).length;
      expect(led).toBeLessThanOrEqual(Math.ceil(partitions / 20));
    }
  });

  it('does not change its input rows', () => {
    const before = place(5, 16, 3);
    nextPlacement(before, nodesTo(5), { joins: 6 });
    nextPlacement(before, nodesTo(5), { leaves: 1 });
    expect(before).toEqual(place(5, 16, 3));
  });

  it('moves a partition with a single copy to its new node, which leads it', () => {
    const before = place(4, 16, 1);
    const after = nextPlacement(before, nodesTo(4), { leaves: 3 });
    expect(after.filter((row, i) => row[0] !== before[i]?.[0])).toHaveLength(
      before.filter(([node]) => node === 3).length,
    );
  });
});

/** The random choices; all of them follow from `PLACEMENT_SEED`. */
function seeds(count: number): number[] {
  const replayed = process.env['PLACEMENT_SEED'];
  if (replayed !== undefined) return [Number(replayed)];
  return Array.from({ length: count * ROUNDS }, (_, i) => i + 1);
}

const NODES_TESTED_MAX = 12;
const CHANGES = 25;

/**
 * Starts with a ring placement and runs through nodes that join, leave and are replaced. Returns the number of changes
 * made.
 */
function changeManyTimes(random: Random, partitions: number): number {
  const replicas = random.pick([1, 2, 3, 3, 3, 5, 7]);
  let lastId = 0;
  const newId = (): number => (lastId += random.between(1, 3));
  let nodes = Array.from({ length: random.between(replicas, NODES_TESTED_MAX) }, newId);
  let table: PlacementTable = foundingPlacement(nodes, partitions, replicas, hash);
  let settled = table;
  for (let i = 0; i < CHANGES; i += 1) {
    const kinds = ['replace'];
    if (nodes.length < NODES_TESTED_MAX) kinds.push('join', 'join');
    if (nodes.length > replicas) kinds.push('leave', 'leave');
    const kind = random.pick(kinds);
    const leaves = kind === 'join' ? undefined : random.pick(nodes);
    const joins = kind === 'leave' ? undefined : newId();
    const next = nextPlacement(table, nodes, { joins, leaves, settled });
    nodes = nodes.filter((node) => node !== leaves).concat(joins ?? []);
    checkMoves(table, next, { joins, leaves }, nodes.length);
    checkSound(next, nodes, replicas);
    if (kind === 'join' && settled === table) checkTakenBack(next, nodes, { leaves: joins, settled });
    table = next;
    if (random.chance(0.7)) settled = table;
  }
  return CHANGES;
}

function checkMoves(
  before: PlacementTable,
  after: PlacementTable,
  { joins, leaves }: { joins: number | undefined; leaves: number | undefined },
  nodeCount: number,
): void {
  if (joins !== undefined && leaves !== undefined) {
    expect(after).toEqual(before.map((row) => row.map((node) => (node === leaves ? joins : node))));
    return;
  }
  const gained = after.map((row, i) => row.filter((node) => before[i]?.includes(node) !== true));
  // Never two copies of one partition, so a majority of three or more copies stays in place.
  expect(Math.max(...gained.map((nodes) => nodes.length))).toBeLessThanOrEqual(1);
  if (leaves !== undefined) {
    expect(gained.map((nodes) => nodes.length)).toEqual(before.map((row) => (row.includes(leaves) ? 1 : 0)));
    return;
  }
  // The joining node gets its part in whole replicas, and no other node gets anything.
  const fraction = before.flat().length / nodeCount;
  expect(gained.flat().length).toBeLessThanOrEqual(Math.ceil(fraction));
  expect(gained.flat().length).toBeGreaterThanOrEqual(Math.floor(fraction));
  expect(gained.flat().filter((node) => node !== joins)).toEqual([]);
}

/** The nodes that had copies before the node joined have them again, unless one of them had more than its part. */
function checkTakenBack(
  table: PlacementTable,
  nodes: readonly number[],
  change: Required<Pick<Change, 'settled'>> & Change,
): void {
  const { leaves, settled } = change;
  const part = Math.ceil(settled.flat().length / (nodes.length - 1));
  if (nodes.some((node) => settled.filter((row) => row.includes(node)).length > part)) return;
  const back = nextPlacement(table, nodes, { leaves, settled });
  expect(back.map((row) => new Set(row))).toEqual(settled.map((row) => new Set(row)));
}

function checkSound(table: PlacementTable, nodes: readonly number[], replicas: number): void {
  const isSound = (row: readonly number[]): boolean =>
    row.length === replicas && new Set(row).size === replicas && row.every((node) => nodes.includes(node));
  expect(table.filter((row) => !isSound(row))).toEqual([]);
  const most = (load: (node: number) => number): number => Math.max(...nodes.map(load));
  // Measured up to 100 partitions: sometimes one more than its part.
  const held = most((node) => table.filter((row) => row.includes(node)).length);
  expect(held).toBeLessThanOrEqual(Math.ceil((table.length * replicas) / nodes.length) + 1);
  const led = most((node) => table.filter((row) => row[0] === node).length);
  expect(led).toBeLessThanOrEqual(Math.ceil(table.length / nodes.length) + 1);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const LEADERS_OF_16: readonly number[] = [2, 3, 2, 1, 1, 3, 2, 3, 2, 3, 3, 2, 1, 1, 1, 3];
