/** The largest of a range of fixed values in O(log n). */

export class MaxTree {
  readonly #size: number;
  /** Leaves from `#size` on; each node holds the larger of its two children. */
  readonly #nodes: Float64Array;

  constructor(values: readonly number[]) {
    this.#size = values.length;
    this.#nodes = new Float64Array(2 * this.#size).fill(-Infinity);
    this.#nodes.set(values, this.#size);
    for (let i = this.#size - 1; i > 0; i -= 1) this.#nodes[i] = this.#larger(2 * i, 2 * i + 1);
  }

  /** The maximum of the values from `begin` up to but excluding `end`; -Infinity for an empty range. */
  max(begin: number, end: number): number {
    let most = -Infinity;
    let low = begin + this.#size;
    let high = end + this.#size;
    while (low < high) {
      if (low % 2 === 1) {
        most = Math.max(most, this.#nodes[low] ?? -Infinity);
        low += 1;
      }
      if (high % 2 === 1) {
        high -= 1;
        most = Math.max(most, this.#nodes[high] ?? -Infinity);
      }
      low >>>= 1;
      high >>>= 1;
    }
    return most;
  }

  #larger(a: number, b: number): number {
    return Math.max(this.#nodes[a] ?? -Infinity, this.#nodes[b] ?? -Infinity);
  }
}
