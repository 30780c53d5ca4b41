/**
 * The ring of consistent hashing: nodes have points on it, and a partition meets them clockwise from its own place.
 * Where on the ring a node or a partition is depends on nothing else.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Hash32 } from './hash.ts';

const POINTS_PER_NODE = 64;

export class Ring {
  /** `place`: of the node, in the list of nodes. */
  readonly #points: readonly { readonly place: number; readonly at: number }[];
  readonly #nodeCount: number;
  readonly #hash: Hash32;

  /**
   * @param nodes by id
   * @param hash mixes well; part of the cluster's fixed configuration
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

  /** The places of all nodes, in the order in which `partition` meets them: most often found long before the ring is round. */
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
