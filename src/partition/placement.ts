/**
 * Which nodes hold which partition, and which of them should lead it: the first placement of a cluster, of the nodes that it
 * is created with. Pure: the same nodes give the same placement everywhere. How it goes on is said by next-placement.ts,
 * and which nodes there are, and since when, by group 0 (src/meta/).
 */
import { NO_NODE, type GroupId, type NodeId } from '../../raft/types.ts';
import type { Hash32 } from './hash.ts';
import { Ring } from './ring.ts';

export interface Placement {
  readonly partitionCount: number;
  /** The nodes that hold the partition; the first one should lead it. */
  replicasOf(partition: number): readonly NodeId[];
}

/** By partition: the distinct nodes that hold it, as many in every row. The first one should lead it. */
export type PlacementTable = readonly (readonly NodeId[])[];

export function tableOf(placement: Placement): PlacementTable {
  return Array.from({ length: placement.partitionCount }, (_, partition) => placement.replicasOf(partition));
}

/** @throws RangeError, from `replicasOf`, for a partition that is not in the table */
export function placementOf(table: PlacementTable): Placement {
  return {
    partitionCount: table.length,
    replicasOf(partition) {
      const replicas = table[partition];
      if (replicas === undefined)
        throw new RangeError(`partition ${partition} is not in 0..${table.length - 1}`);
      return replicas;
    },
  };
}

/** Group 0 is reserved for cluster metadata. */
export function groupOfPartition(partition: number): GroupId {
  return partition + 1;
}

/**
 * Consistent hashing on a ring with bounded loads: each partition goes to the next distinct nodes clockwise that
 * still have room, so that a joining node takes only its share and no node holds or leads more than its part.
 *
 * @param hash a well-mixing 32-bit hash of a string; part of the cluster's fixed configuration.
 * @param replicaCount copies of each partition, at most the number of nodes.
 */
export function ringPlacement(
  nodes: readonly NodeId[],
  partitionCount: number,
  replicaCount: number,
  hash: Hash32,
): Placement {
  const ring = new Ring(nodes, hash);
  const copies = Math.min(replicaCount, nodes.length);
  const held = new Load(Math.ceil((partitionCount * copies) / nodes.length));
  const led = new Load(Math.ceil(partitionCount / nodes.length));
  const table: NodeId[][] = [];
  for (let partition = 0; partition < partitionCount; partition += 1) {
    const order = ring.orderOf(partition);
    if (order.length === 0) throw new RangeError('placement needs at least one node');
    const replicas = take(order, copies, partitionCount - partition, held);
    for (const node of replicas) held.add(node);
    table.push(replicas);
    giveLeader(table, partition, led);
  }
  return placementOf(table);
}

class Load {
  readonly #counts = new Map<NodeId, number>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  room(node: NodeId): number {
    return this.#max - (this.#counts.get(node) ?? 0);
  }

  add(node: NodeId): void {
    this.#counts.set(node, (this.#counts.get(node) ?? 0) + 1);
  }
}

/**
 * The first `count` that have room. A node with room for all `left` partitions loses room whenever it is passed
 * over; when there is no more to lose than that, such nodes come first, so that room never runs out before the end.
 */
function take(order: readonly NodeId[], count: number, left: number, held: Load): NodeId[] {
  const slack = order.reduce((sum, node) => sum + Math.min(held.room(node), left), 0) - left * count;
  const tight = order.filter((node) => held.room(node) >= left);
  const forced = tight.slice(0, Math.max(0, tight.length - slack));
  const others = order.filter((node) => held.room(node) > 0 && !forced.includes(node));
  const taken = new Set([...forced, ...others].slice(0, count));
  return order.filter((node) => taken.has(node));
}

/**
 * Puts a leader first. If no replica may lead one more, one of them hands a partition on to another of its
 * replicas, which may do the same (an augmenting path); one exists, because the copies are spread evenly.
 */
function giveLeader(table: NodeId[][], partition: number, led: Load): void {
  const comesFrom = new Map<NodeId, { readonly partition: number; readonly from: NodeId }>();
  const full: NodeId[] = [];
  const isGiven = (handedOn: number, from: NodeId): boolean => {
    for (const node of table[handedOn] ?? []) {
      if (comesFrom.has(node)) continue;
      comesFrom.set(node, { partition: handedOn, from });
      if (led.room(node) > 0) {
        handOn(table, node, comesFrom);
        led.add(node);
        return true;
      }
      full.push(node);
    }
    return false;
  };
  if (isGiven(partition, NO_NODE)) return;
  for (const node of full) {
    for (let other = 0; other < partition; other += 1) {
      if (table[other]?.[0] === node && isGiven(other, node)) return;
    }
  }
  throw new RangeError(`partition ${partition} finds no leader`);
}

function handOn(
  table: NodeId[][],
  last: NodeId,
  comesFrom: ReadonlyMap<NodeId, { readonly partition: number; readonly from: NodeId }>,
): void {
  for (let node = last; node !== NO_NODE;) {
    const step = comesFrom.get(node);
    if (step === undefined) return;
    const replicas = table[step.partition] ?? [];
    const leader = node;
    table[step.partition] = [leader, ...replicas.filter((other) => other !== leader)];
    node = step.from;
  }
}
