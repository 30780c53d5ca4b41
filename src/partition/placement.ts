/**
 * Which nodes hold which partition, and which of them should lead it. Pure: the same nodes give the same placement
 * everywhere. It comes from the bootstrap configuration for now; a replicated meta group (group 0) takes over
 * behind the same `Placement` interface.
 */
import type { GroupId, NodeId } from '../../raft/types.ts';

export interface Placement {
  readonly partitionCount: number;
  /** The nodes that hold the partition; the first one should lead it. */
  replicasOf(partition: number): readonly NodeId[];
}

/** Group 0 is reserved for cluster metadata. */
export function groupOfPartition(partition: number): GroupId {
  return partition + 1;
}

const POINTS_PER_NODE = 64;

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
  hash: (text: string) => number,
): Placement {
  const ring = nodes
    .flatMap((node) =>
      Array.from({ length: POINTS_PER_NODE }, (_, point) => ({ node, at: hash(`node/${node}/${point}`) })),
    )
    .sort((a, b) => a.at - b.at || a.node - b.node);
  const copies = Math.min(replicaCount, nodes.length);
  const held = new Load(Math.ceil((partitionCount * copies) / nodes.length));
  const led = new Load(Math.ceil(partitionCount / nodes.length));
  const table: NodeId[][] = [];
  for (let partition = 0; partition < partitionCount; partition += 1) {
    const order = clockwise(ring, hash(`partition/${partition}`));
    const replicas = take(order, copies, (node) => held.hasRoom(node));
    for (const node of replicas) held.add(node);
    const leader = replicas.find((node) => led.hasRoom(node)) ?? replicas[0];
    if (leader === undefined) throw new RangeError('placement needs at least one node');
    led.add(leader);
    table.push([leader, ...replicas.filter((node) => node !== leader)]);
  }
  return {
    partitionCount,
    replicasOf(partition) {
      const replicas = table[partition];
      if (replicas === undefined)
        throw new RangeError(`partition ${partition} is not in 0..${partitionCount - 1}`);
      return replicas;
    },
  };
}

class Load {
  readonly #counts = new Map<NodeId, number>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  hasRoom(node: NodeId): boolean {
    return (this.#counts.get(node) ?? 0) < this.#max;
  }

  add(node: NodeId): void {
    this.#counts.set(node, (this.#counts.get(node) ?? 0) + 1);
  }
}

/** All nodes, each once, in ring order from `at`. */
function clockwise(ring: readonly { node: NodeId; at: number }[], at: number): NodeId[] {
  const start = ring.findIndex((point) => point.at >= at);
  const from = start === -1 ? 0 : start;
  const order = new Set<NodeId>();
  for (let i = 0; i < ring.length; i += 1) {
    const point = ring[(from + i) % ring.length];
    if (point !== undefined) order.add(point.node);
  }
  return [...order];
}

/** The first `count` that have room; if too few have, the first ones that have none fill up. */
function take(order: readonly NodeId[], count: number, hasRoom: (node: NodeId) => boolean): NodeId[] {
  const roomy = order.filter(hasRoom);
  const full = order.filter((node) => !hasRoom(node));
  return [...roomy, ...full].slice(0, count);
}
