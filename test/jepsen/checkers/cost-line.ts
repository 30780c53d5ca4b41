/** Costs along time, in order, with the sum of those inside a window in O(log n). Judges nothing. */

export class CostLine {
  readonly #times: number[] = [];
  /** Cost before each of them; one longer than the times. */
  readonly #before: number[] = [0];

  /** Nearly always at the end, else a few places before it. */
  insert(timeMillis: number, cost: number): void {
    let at = this.#times.length;
    while (at > 0 && (this.#times[at - 1] ?? 0) > timeMillis) at -= 1;
    this.#times.splice(at, 0, timeMillis);
    this.#before.splice(at + 1, 0, (this.#before[at] ?? 0) + cost);
    for (let i = at + 2; i < this.#before.length; i += 1) this.#before[i] = (this.#before[i] ?? 0) + cost;
  }

  /** Drops what is at or after `t`. */
  dropFrom(t: number): void {
    const keep = this.#times.findLastIndex((time) => time < t) + 1;
    this.#times.length = keep;
    this.#before.length = keep + 1;
  }

  /** -Infinity of nothing. */
  get newestMillis(): number {
    return this.#times.at(-1) ?? -Infinity;
  }

  /** The cost of all with `time > t - windowMillis`: also of those after `t`. */
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
