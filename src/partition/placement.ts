/**
 * Decides which nodes hold each partition and which of them should lead it. A pure function of the nodes and the
 * previous placement, so all nodes compute the same. The first placement depends on the founding nodes only. Each
 * later one is derived from the one before, because no function of the nodes alone moves little data both when a
 * node joins and when one leaves. Group 0 (src/meta/) keeps the list of nodes and its history.
 *
 * - A node that replaces another gets everything that one held and led; nothing else changes.
 * - Copies that share more failure domains than necessary, and those of a node that leaves, move elsewhere
 *   (copies.ts).
 * - A node that joins takes its part from the nodes that hold most. No other node gets a copy that could stay where
 *   it is, unless new labels put nodes on other hosts or into other zones.
 * - Then the leaders are balanced among the nodes that hold each partition (leaders.ts).
 */
import { type GroupId, NO_NODE, type NodeId } from '../../raft/types.ts';
import { NOWHERE, placeCopies } from './copies.ts';
import type { Hash32 } from './hash.ts';
import { leadersOf } from './leaders.ts';
import { type LabelledNode, Topology } from './topology.ts';

/** For each partition: the distinct nodes that hold it, the same number in every row. The first should lead it. */
export type PlacementTable = readonly (readonly NodeId[])[];

/** The Raft group of a partition. Group 0 is reserved for cluster metadata. */
export function groupOfPartition(partition: number): GroupId {
  return partition + 1;
}

/**
 * The first placement of a cluster: consistent hashing with bounded loads (Mirrokni et al. 2016). Each partition goes
 * to the first distinct nodes clockwise that have room.
 *
 * @param replicaCount copies of each partition; one on each node if there are fewer nodes
 * @param hash a well-mixing 32-bit hash of a string; part of the cluster's fixed configuration
 * @throws RangeError without nodes
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

/** A change of the nodes and the placement before it. */
export interface PlacementChange {
  /** The nodes, and where the copies are: distinct nodes, the same number in every row. */
  readonly before: readonly LabelledNode[];
  readonly table: PlacementTable;
  /** At most one node joins and at most one leaves. At least as many nodes as copies. */
  readonly after: readonly LabelledNode[];
  /** Where the copies were when all had finished moving last. */
  readonly settled?: PlacementTable | undefined;
  /** Nothing was written yet, so copies may move freely to balance the loads. */
  readonly isFounding?: true;
}

/** The placement after a change of the nodes. Equal to the one before if the change does not matter. */
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
    // The new node has other labels. Treat it as if it joined and then the other left.
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
  /** The previous rows, or empty rows. Nodes that are not in the topology have left. */
  readonly table: PlacementTable;
  readonly settled: PlacementTable;
  readonly isFounding: boolean;
  readonly mayReceive: (node: NodeId) => boolean;
}

/** Computes with node indexes in the topology instead of ids. */
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

const POINTS_PER_NODE = 64;

/**
 * The ring of consistent hashing (Karger et al. 1997): nodes have points on it, and a partition meets them clockwise
 * from its own place. The points of a node depend on its id alone, the place of a partition on its number alone.
 */
export class Ring {
  /** `place` is the node's index in the list of nodes. */
  readonly #points: readonly { readonly place: number; readonly at: number }[];
  readonly #nodeCount: number;
  readonly #hash: Hash32;

  /**
   * @param nodes sorted by id
   * @param hash must mix well; part of the cluster's fixed configuration
   */
  constructor(nodes: readonly NodeId[], hash: Hash32) {
    this.#hash = hash;
    this.#nodeCount = nodes.length;
    this.#points = nodes
      .flatMap((node, place) =>
        Array.from({ length: POINTS_PER_NODE }, (_, point) => ({ place, at: hash(`node/${node}/${point}`) })),
      )
      .sort((a, b) => a.at - b.at || a.place - b.place);
  }

  /**
   * The indexes of all nodes, in the order in which `partition` meets them. Usually all are found long before the end
   * of the ring.
   */
  orderOf(partition: number): number[] {
    const from = this.#firstPointFrom(this.#hash(`partition/${partition}`));
    const order: number[] = [];
    const isMet = new Uint8Array(this.#nodeCount);
    for (let i = 0; order.length < this.#nodeCount; i += 1) {
      const { place = 0 } = this.#points[(from + i) % this.#points.length] ?? {};
      if (isMet[place] === 1) continue;
      isMet[place] = 1;
      order.push(place);
    }
    return order;
  }

  #firstPointFrom(place: number): number {
    let [low, high] = [0, this.#points.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#points[middle]?.at ?? place) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
