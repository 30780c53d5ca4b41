/** Costs along time, in order, with the sum of those inside a window in O(log n). Judges nothing. */

export class CostLine {
  readonly #times: number[] = [];
  /** The sum of the costs before each entry. It is one longer than the times. */
  readonly #before: number[] = [0];

  /** New costs nearly always belong at the end, otherwise a few places before it. */
  insert(timeMillis: number, cost: number): void {
    let at = this.#times.length;
    while (at > 0 && (this.#times[at - 1] ?? 0) > timeMillis) at -= 1;
    this.#times.splice(at, 0, timeMillis);
    this.#before.splice(at + 1, 0, (this.#before[at] ?? 0) + cost);
    for (let i = at + 2; i < this.#before.length; i += 1) this.#before[i] = (this.#before[i] ?? 0) + cost;
  }

  /** Drops the costs at or after `t`. */
  dropFrom(t: number): void {
    const keep = this.#times.findLastIndex((time) => time < t) + 1;
    this.#times.length = keep;
    this.#before.length = keep + 1;
  }

  /** -Infinity if there is none. */
  get newestMillis(): number {
    return this.#times.at(-1) ?? -Infinity;
  }

  /** The sum of all costs with `time > t - windowMillis`, including those after `t`. */
  live(t: number, windowMillis: number): number {
    let low = 0;
    let high = this.#times.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] ?? 0) <= t - windowMillis) low = middle + 1;
      else high = middle;
    }
    return (this.#before.at(-1) ?? 0) - (this.#before[low] ?? 0);
  }
}
