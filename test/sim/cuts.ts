/** Cut paths, and the sets of paths that a network partition cuts. */
import type { NodeId } from '../../raft/types.ts';
import type { SimNetwork } from './network.ts';

export type Path = [from: NodeId, to: NodeId];

export class Cuts {
  readonly #network: SimNetwork;
  /** The number of faults that cut each path: it heals when none does. */
  readonly #wanted = new Map<string, number>();

  constructor(network: SimNetwork) {
    this.#network = network;
  }

  /** Returns a function that heals these paths. */
  cut(paths: readonly Path[]): () => void {
    for (const [from, to] of paths) {
      this.#want(from, to, 1);
      this.#network.cut(from, to);
    }
    return () => {
      for (const [from, to] of paths) if (this.#want(from, to, -1) === 0) this.#network.heal(from, to);
    };
  }

  #want(from: NodeId, to: NodeId, change: 1 | -1): number {
    const key = `${from}>${to}`;
    const wanted = (this.#wanted.get(key) ?? 0) + change;
    this.#wanted.set(key, wanted);
    return wanted;
  }
}

/** Each path between one of these and one of those. */
export function bothWays(some: readonly NodeId[], others: readonly NodeId[]): Path[] {
  return some.flatMap((a) =>
    others.flatMap((b): Path[] => [
      [a, b],
      [b, a],
    ]),
  );
}

/** Without these paths each node sees a majority, and no two nodes see the same one. */
export function ringOf(order: readonly NodeId[]): Path[] {
  const near = Math.max(1, Math.floor((order.length - 1) / 4) || 1);
  const paths: Path[] = [];
  for (const [i, a] of order.entries()) {
    for (const [j, b] of order.entries()) {
      const apart = Math.min((i - j + order.length) % order.length, (j - i + order.length) % order.length);
      // Three nodes are a ring already: one of its paths is cut.
      const isFar = order.length > 3 ? apart > near : (i === 0 && j === 2) || (i === 2 && j === 0);
      if (apart > 0 && isFar) paths.push([a, b]);
    }
  }
  return paths;
}

export function without(all: readonly NodeId[], some: readonly NodeId[]): NodeId[] {
  return all.filter((node) => !some.includes(node));
}
