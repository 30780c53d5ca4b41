/**
 * Which nodes hold which partition, and which of them should lead it. Pure: the same nodes give the same placement everywhere. The first
 * placement of a cluster is made of the nodes that it is created with, and every other one of the placement before it: no function of
 * the nodes alone moves little both when a node comes and when it goes. Which nodes there are, and since when, is said by group 0
 * (src/meta/).
 *
 * - A node that comes in the place of another gets all that this one held and led, and nothing else changes.
 * - Copies that no longer share as little as they can, and those of a node that leaves, go elsewhere (copies.ts).
 * - A node that joins takes its part from those that hold most. Nobody else gets a copy that could stay where it is, but when nodes
 *   share something else than before.
 * - Then leaders are evened out among those that hold a partition (leaders.ts).
 */
import { type GroupId, NO_NODE, type NodeId } from '../../raft/types.ts';
import { NOWHERE, placeCopies } from './copies.ts';
import type { Hash32 } from './hash.ts';
import { leadersOf } from './leaders.ts';
import { Ring } from './ring.ts';
import { type LabelledNode, Topology } from './topology.ts';

/** By partition: the distinct nodes that hold it, as many in every row. The first one should lead it. */
export type PlacementTable = readonly (readonly NodeId[])[];

/** Group 0 is reserved for cluster metadata. */
export function groupOfPartition(partition: number): GroupId {
  return partition + 1;
}

/**
 * Consistent hashing with bounded loads: each partition goes to the first distinct nodes clockwise that have room.
 *
 * @param hash a well-mixing 32-bit hash of a string; part of the cluster's fixed configuration.
 * @param replicaCount copies of each partition; one on each node if there are fewer nodes.
 */
export function foundingPlacement(
  nodes: readonly NodeId[],
  partitionCount: number,
  replicaCount: number,
  hash: Hash32,
): PlacementTable {
  if (nodes.length === 0) throw new RangeError('placement needs at least one node');
  const table = Array.from({ length: partitionCount }, () => []);
  const topology = new Topology(nodes.map((id) => ({ id })));
  const copies = Math.min(replicaCount, nodes.length);
  return placed({ topology, copies, table, settled: [], isFounding: true, mayReceive: () => false }, hash);
}

export interface PlacementChange {
  /** The nodes, and where the copies are; in every row as many, distinct ones. */
  readonly before: readonly LabelledNode[];
  readonly table: PlacementTable;
  /** At most one comes, and at most one goes; at least as many as there are copies. */
  readonly after: readonly LabelledNode[];
  /** Where the copies were when all had moved last. */
  readonly settled?: PlacementTable | undefined;
  /** Nobody has written anything yet: copies move wherever loads want them. */
  readonly isFounding?: true;
}

export function placementAfter(change: PlacementChange, hash: Hash32): PlacementTable {
  const { before, after, table, settled = [], isFounding = false } = change;
  const [was, is] = [new Topology(before), new Topology(after)];
  const joins = is.nodes.find((node) => !was.nodes.includes(node));
  const leaves = was.nodes.find((node) => !is.nodes.includes(node));
  const isLike = is.isLike(was);
  if (joins === undefined && leaves === undefined && isLike) return table;
  if (joins !== undefined && leaves !== undefined) {
    if (is.isLike(was, (node) => (node === joins ? leaves : node)))
      return table.map((row) => row.map((node) => (node === leaves ? joins : node)));
    // It stands elsewhere: as if it came, and then the other went.
    const both = [...before, ...after.filter(({ id }) => id === joins)];
    const joined = placementAfter({ before, table, after: both, settled }, hash);
    return placementAfter({ before: both, table: joined, after, settled }, hash);
  }
  const mayReceive = (node: NodeId): boolean => !isLike || node === joins;
  const copies = table[0]?.length ?? 0;
  return placed({ topology: is, copies, table, settled, isFounding, mayReceive }, hash);
}

interface Plan {
  readonly topology: Topology;
  readonly copies: number;
  /** What goes on, or empty rows. Nodes that are not in the topology have left. */
  readonly table: PlacementTable;
  readonly settled: PlacementTable;
  readonly isFounding: boolean;
  readonly mayReceive: (node: NodeId) => boolean;
}

/** Nodes are numbered by their place among those of the topology. */
function placed({ topology, copies, table, isFounding, ...plan }: Plan, hash: Hash32): PlacementTable {
  const { nodes } = topology;
  const places = new Map(nodes.map((node, place) => [node, place]));
  const placesOf = (row: readonly NodeId[]): number[] => row.map((node) => places.get(node) ?? NOWHERE);
  const idOf = (place: number): NodeId => nodes[place] ?? NO_NODE;
  const ring = new Ring(nodes, hash);
  const orders: number[][] = [];
  const before = table.map(placesOf);
  const settled = plan.settled.map(placesOf);
  const rows = placeCopies({
    nodeCount: nodes.length,
    copies,
    rows: before.map((row) => row.filter((place) => place !== NOWHERE)),
    home: isFounding ? [] : before,
    settled,
    closeness: (a, b) => topology.closeness(idOf(a), idOf(b)),
    orderOf: (partition) => (orders[partition] ??= ring.orderOf(partition)),
    mayReceive: (place) => plan.mayReceive(idOf(place)),
  });
  const leaders = leadersOf({ rows, before, settled, zones: topology.zones.map(placesOf) });
  return rows.map((row, i) => {
    const leader = leaders[i] ?? NOWHERE;
    return [leader, ...row.filter((place) => place !== leader)].map(idOf);
  });
}
