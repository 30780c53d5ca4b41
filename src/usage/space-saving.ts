/**
 * The most frequent keys of a stream in memory that does not grow: Space-Saving (Metwally, Agrawal and El Abbadi,
 * "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). With `capacity` counters and n
 * additions, the count of a key that is kept is too high by its `error` at most, and never too low; a key that is not
 * kept was added `least` times at most; and no error, nor `least`, exceeds n / capacity.
 *
 * A key is a text in a group, so that the same text in two groups is two keys without being joined to another.
 */

/** A key that is kept: added from `count - error` to `count` times. */
export interface Kept {
  readonly group: number;
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

export class SpaceSaving {
  /** By group: which counter a key has. */
  readonly #counterOf: Map<string, number>[] = [];
  readonly #keys: (string | undefined)[];
  readonly #groups: Int32Array;
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  /** Counters as a binary heap by their counts, least first. */
  readonly #heap: Int32Array;
  /** Where in the heap a counter is. */
  readonly #placeOf: Int32Array;

  /** @param capacity counters, at least 1 */
  constructor(capacity: number) {
    this.#keys = Array.from({ length: capacity }, () => undefined);
    this.#groups = new Int32Array(capacity);
    this.#counts = new Float64Array(capacity);
    this.#errors = new Float64Array(capacity);
    this.#heap = Int32Array.from({ length: capacity }, (_, counter) => counter);
    this.#placeOf = Int32Array.from(this.#heap);
  }

  /** A key that is not kept was added so often at most; 0 while there is a counter for everyone. */
  get least(): number {
    return this.#counts[this.#heap[0] ?? 0] ?? 0;
  }

  /** @param group a whole number >= 0, small */
  add(group: number, key: string): void {
    const counters = (this.#counterOf[group] ??= new Map());
    let counter = counters.get(key);
    if (counter === undefined) {
      counter = this.#freeLeast();
      counters.set(key, counter);
      this.#keys[counter] = key;
      this.#groups[counter] = group;
      this.#errors[counter] = this.least;
    }
    this.#counts[counter] = (this.#counts[counter] ?? 0) + 1;
    this.#sink(counter);
  }

  /** In no order. */
  *kept(): Iterable<Kept> {
    for (const [counter, key] of this.#keys.entries()) {
      if (key === undefined) continue;
      const group = this.#groups[counter] ?? 0;
      yield { group, key, count: this.#counts[counter] ?? 0, error: this.#errors[counter] ?? 0 };
    }
  }

  /** The counter with the least count loses its key, and keeps its count: the next key may have been added so often. */
  #freeLeast(): number {
    const counter = this.#heap[0] ?? 0;
    const key = this.#keys[counter];
    if (key !== undefined) this.#counterOf[this.#groups[counter] ?? 0]?.delete(key);
    return counter;
  }

  /** Down to its place, after its count has grown. */
  #sink(counter: number): void {
    const heap = this.#heap;
    const counts = this.#counts;
    const count = counts[counter] ?? 0;
    let place = this.#placeOf[counter] ?? 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#countAt(child + 1) < this.#countAt(child)) child += 1;
      if (this.#countAt(child) >= count) break;
      const lesser = heap[child] ?? 0;
      heap[place] = lesser;
      this.#placeOf[lesser] = place;
      place = child;
    }
    heap[place] = counter;
    this.#placeOf[counter] = place;
  }

  #countAt(place: number): number {
    return this.#counts[this.#heap[place] ?? 0] ?? 0;
  }
}
