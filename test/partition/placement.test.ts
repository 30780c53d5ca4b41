import { beforeAll, describe, expect, it } from 'vitest';
import { type Hash32, loadHash32 } from '../../src/partition/hash.ts';
import { groupOfPartition, type Placement, ringPlacement } from '../../src/partition/placement.ts';

let hash: Hash32;

beforeAll(async () => {
  hash = await loadHash32();
});

function nodesTo(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

function tableOf(placement: Placement): (readonly number[])[] {
  return Array.from({ length: placement.partitionCount }, (_, partition) => placement.replicasOf(partition));
}

function place(nodeCount: number, partitions: number, replicas: number): (readonly number[])[] {
  return tableOf(ringPlacement(nodesTo(nodeCount), partitions, replicas, hash));
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

  it('is the same whoever computes it, in whatever order the nodes are listed', async () => {
    const otherHash = await loadHash32();
    const nodes = [4, 9, 2, 31, 7];
    const table = tableOf(ringPlacement(nodes, 128, 3, hash));
    expect(tableOf(ringPlacement(nodes.toReversed(), 128, 3, otherHash))).toEqual(table);
    expect(
      tableOf(
        ringPlacement(
          nodes.toSorted((a, b) => a - b),
          128,
          3,
          otherHash,
        ),
      ),
    ).toEqual(table);
  });

  it('of three nodes never changes', () => {
    // Nodes compute it on their own: a change here splits a running cluster.
    expect(place(3, 16, 3).map((replicas) => replicas[0])).toEqual(LEADERS_OF_16);
  });

  it('on one node is that node', () => {
    expect(place(1, 4, 3)).toEqual([[1], [1], [1], [1]]);
  });

  it('needs a node, and knows its partitions', () => {
    expect(() => ringPlacement([], 4, 3, hash)).toThrow('placement needs at least one node');
    const placement = ringPlacement([1], 4, 1, hash);
    expect(() => placement.replicasOf(4)).toThrow('partition 4 is not in 0..3');
    expect(() => placement.replicasOf(-1)).toThrow(RangeError);
  });

  it('leaves group 0 to the cluster itself', () => {
    expect([groupOfPartition(0), groupOfPartition(15)]).toEqual([1, 16]);
  });
});

describe('the load of a node', () => {
  it.each(PARTITION_COUNTS)(
    'of three with three copies is even: all hold, none leads more than its part of %i',
    (partitions) => {
      const { held, led } = loadsOf(place(3, partitions, 3), 3);
      expect(held).toEqual([partitions, partitions, partitions]);
      expect(Math.max(...led)).toBeLessThanOrEqual(Math.ceil(partitions / 3));
    },
  );

  it('is near its part for every number of nodes, partitions and copies', () => {
    for (let nodeCount = 1; nodeCount <= 9; nodeCount += 1) {
      for (let replicas = 1; replicas <= Math.min(7, nodeCount); replicas += 1) {
        for (const partitions of PARTITION_COUNTS) {
          const { held, led } = loadsOf(place(nodeCount, partitions, replicas), nodeCount);
          const heldPart = Math.ceil((partitions * replicas) / nodeCount);
          const ledPart = Math.ceil(partitions / nodeCount);
          const what = { nodeCount, replicas, partitions };
          // Measured: at most 2 or 17 % above.
          expect({ ...what, isNear: Math.max(...held) <= Math.max(heldPart + 2, heldPart * 1.17) }).toEqual({
            ...what,
            isNear: true,
          });
          expect({ ...what, isNear: Math.max(...led) <= Math.max(ledPart + 2, ledPart * 1.17) }).toEqual({
            ...what,
            isNear: true,
          });
        }
      }
    }
  });

  it.each([
    ['held', 3, 2, 100],
    ['held', 4, 3, 1_024],
    ['led', 4, 3, 16],
    ['led', 5, 3, 256],
    ['led', 8, 5, 64],
  ] as const)(
    'never exceeds its part: %s by %i nodes, %i copies of %i partitions',
    (what, nodeCount, replicas, partitions) => {
      const loads = loadsOf(place(nodeCount, partitions, replicas), nodeCount);
      const share = what === 'held' ? partitions * replicas : partitions;
      expect(Math.max(...loads[what])).toBeLessThanOrEqual(Math.ceil(share / nodeCount));
    },
  );
});

describe('a node that joins', () => {
  // Measured with XXH32: 0.92 to 1.6 times its share for 16 partitions, at most 1.38 from 64 on, 1.2 for 1,024.
  it.each([
    [16, 1.7],
    [64, 1.5],
    [256, 1.4],
    [1_024, 1.3],
  ])('takes about its share of %i partitions: at most %f times as many copies move', (partitions, factor) => {
    for (let nodeCount = 3; nodeCount <= 8; nodeCount += 1) {
      const before = place(nodeCount, partitions, 3);
      const after = place(nodeCount + 1, partitions, 3);
      const newcomer = nodeCount + 1;
      const moved = after.map((replicas, i) => replicas.filter((node) => before[i]?.includes(node) !== true));
      const share = (partitions * 3) / newcomer;
      expect(moved.flat().length).toBeLessThanOrEqual(share * factor);
      expect(moved.flat().filter((node) => node === newcomer).length).toBeGreaterThanOrEqual(share * 0.9);
      // A quorum of every partition but a few stays where it was.
      const shaken = moved.filter((nodes) => nodes.length > 1).length;
      expect(shaken).toBeLessThanOrEqual(partitions * 0.1);
    }
  });
});

const LEADERS_OF_16: readonly number[] = [1, 3, 2, 1, 1, 3, 2, 3, 2, 3, 3, 2, 1, 1, 1, 3];
