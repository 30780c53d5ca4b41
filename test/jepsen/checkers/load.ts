/** The cost that may have counted at a limit at any moment of real time. Judges nothing. */
import { MaxTree } from './max-tree.ts';

/** The cost that may have counted, as a step function of real time. */
export class Load {
  readonly #times: Float64Array;
  /** The load from each time on. */
  readonly #load: MaxTree;

  constructor(changes: { readonly at: number; readonly by: number }[]) {
    // At equal times, costs are added before others are removed: the load is overestimated rather than underestimated.
    changes.sort((a, b) => a.at - b.at || b.by - a.by);
    this.#times = Float64Array.from(changes, ({ at }) => at);
    let load = 0;
    this.#load = new MaxTree(changes.map(({ by }) => (load += by)));
  }

  /** The largest load within [from, to]. */
  most(from: number, to: number): number {
    const first = Math.max(0, this.#count(from) - 1);
    const end = this.#count(to);
    return Math.max(0, this.#load.max(first, end));
  }

  /** The number of changes at or before `at`. */
  #count(at: number): number {
    let low = 0;
    let high = this.#times.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
