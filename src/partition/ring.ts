/**
 * The ring of consistent hashing (Karger et al. 1997): nodes have points on it, and a partition meets them clockwise
 * from its own place. The points of a node depend on its id alone, the place of a partition on its number alone.
 */
import type { NodeId } from '../../raft/types.ts';
import type { Hash32 } from './hash.ts';

const POINTS_PER_NODE = 64;

/** The points of a list of nodes. */
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
