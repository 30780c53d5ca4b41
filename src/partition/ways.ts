/** Which nodes can hand something on to which, by how many exchanges, and the shortest ways from who has much to who has little. Pure. */

export class Ways {
  readonly #nodes: number;
  /** By giver and taker, numbered from 0. */
  readonly #exchanges: Int32Array;

  constructor(nodes: number) {
    this.#nodes = nodes;
    this.#exchanges = new Int32Array(nodes * nodes);
  }

  /** There are so many more ways to hand something on from one to the other. */
  count(from: number, to: number, by: number): void {
    const at = from * this.#nodes + to;
    this.#exchanges[at] = (this.#exchanges[at] ?? 0) + by;
  }

  /**
   * From the one with the highest load that can reach one with at least two less, to the nearest such one; undefined: there is none.
   *
   * @param loads by node
   * @param except who is no beginning
   */
  path(loads: readonly number[], except: ReadonlySet<number>): number[] | undefined {
    const least = Math.min(...loads);
    const starts = [...loads.keys()]
      .filter((node) => !except.has(node) && (loads[node] ?? 0) >= least + 2)
      .sort((a, b) => (loads[b] ?? 0) - (loads[a] ?? 0) || a - b);
    // Whoever was reached from one with more, in vain, leads to nobody with so little.
    const cameFrom = new Map<number, number | undefined>();
    for (const start of starts) {
      if (cameFrom.has(start)) continue;
      cameFrom.set(start, undefined);
      const last = this.#search([start], (loads[start] ?? 0) - 2, loads, cameFrom);
      if (last !== undefined) return pathTo(last, cameFrom);
    }
    return undefined;
  }

  /** Breadth first; `reached` grows while it is gone through. Returns the first with at most `few`. */
  #search(
    reached: number[],
    few: number,
    loads: readonly number[],
    cameFrom: Map<number, number | undefined>,
  ): number | undefined {
    for (const from of reached) {
      for (let to = 0; to < this.#nodes; to += 1) {
        if (cameFrom.has(to) || this.#exchanges[from * this.#nodes + to] === 0) continue;
        cameFrom.set(to, from);
        if ((loads[to] ?? 0) <= few) return to;
        reached.push(to);
      }
    }
    return undefined;
  }
}

function pathTo(last: number, cameFrom: ReadonlyMap<number, number | undefined>): number[] {
  const path: number[] = [];
  for (let node: number | undefined = last; node !== undefined; node = cameFrom.get(node)) path.unshift(node);
  return path;
}
