/**
 * The ring of consistent hashing: nodes have points on it, and a partition meets them clockwise from its own place.
 * Where on the ring a node or a partition is depends on nothing else.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Hash32 } from './hash.ts';

const POINTS_PER_NODE = 64;
/** Places are hashes of 32 bits. */
const CIRCUMFERENCE = 2 ** 32;

export class Ring {
  readonly #points: readonly { readonly node: NodeId; readonly at: number }[];
  readonly #nodeCount: number;
  readonly #hash: Hash32;

  /** @param hash mixes well; part of the cluster's fixed configuration */
  constructor(nodes: readonly NodeId[], hash: Hash32) {
    this.#hash = hash;
    this.#nodeCount = nodes.length;
    this.#points = nodes
      .flatMap((node) =>
        Array.from({ length: POINTS_PER_NODE }, (_, point) => ({ node, at: hash(`node/${node}/${point}`) })),
      )
      .sort((a, b) => a.at - b.at || a.node - b.node);
  }

  /** All nodes, each once, in the order in which `partition` meets them: most often found long before the ring is round. */
  orderOf(partition: number): NodeId[] {
    const from = this.#firstPointFrom(this.#placeOf(partition));
    const order = new Set<NodeId>();
    for (let i = 0; i < this.#points.length && order.size < this.#nodeCount; i += 1) {
      const point = this.#points[(from + i) % this.#points.length];
      if (point !== undefined) order.add(point.node);
    }
    return [...order];
  }

  /** How far it is clockwise from `partition` to the first node that it meets, in parts of `CIRCUMFERENCE`. */
  distanceFrom(partition: number): number {
    const place = this.#placeOf(partition);
    const next = this.#points[this.#firstPointFrom(place) % this.#points.length];
    return next === undefined ? CIRCUMFERENCE : (next.at - place + CIRCUMFERENCE) % CIRCUMFERENCE;
  }

  #placeOf(partition: number): number {
    return this.#hash(`partition/${partition}`);
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
