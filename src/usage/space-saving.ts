/**
 * Finds the most frequent keys of a stream in fixed memory: Space-Saving (Metwally, Agrawal and El Abbadi,
 * "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005) behind a filter (Homem and
 * Carvalho, "Finding top-k elements in data streams", Information Sciences 180, 2010). With `capacity` counters and
 * n additions: the count of a kept key is never too low, and too high by its `error` at most; a key that is not
 * kept was added at most `least` times, which is the smallest count that is kept; and no error, nor `least`, exceeds
 * n / capacity.
 *
 * The filter bounds, per hash cell, how often keys that are not kept were added. Such a key gets a counter only
 * when this bound would exceed `least`. Without the filter most keys of a long tail would take a counter, only to
 * lose it to the next.
 *
 * Counters are sorted by count, and counters with equal counts form a block, so an increment is a swap in constant
 * time. A key is a text in a group; the same text in two groups counts as two keys.
 */
import { FNV_OFFSET_BASIS, fnv1a } from '../api/text-hash.ts';

/** A kept key: it was added from `count - error` to `count` times. */
export interface Kept {
  readonly group: number;
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

/** Enough cells that few keys have the cell of a kept key, which would cost them a lookup. */
const CELLS_PER_COUNTER = 8;

/** A sketch of the most frequent keys. */
export class SpaceSaving {
  /** By filter cell: no key of it that is not kept was added more often than this. */
  readonly #tailOf: Float64Array;
  /** By cell: how many of its keys are kept. */
  readonly #keptOf: Int32Array;
  /** By group: the counter of each kept key. */
  readonly #counterOf: Map<string, number>[] = [];
  /** By counter. */
  readonly #keys: (string | undefined)[];
  readonly #groups: Int32Array;
  readonly #errors: Float64Array;
  readonly #placeOf: Int32Array;
  readonly #blockOf: Int32Array;
  /** By place: the counters, smallest count first. */
  readonly #counterAt: Int32Array;
  /**
   * By block: the place of its last counter, and the count of all its counters. No two blocks have the same count.
   */
  readonly #lastOf: Int32Array;
  readonly #countOf: Float64Array;
  /** Unused blocks. There is one block more than counters, so one is always unused. */
  readonly #freeBlocks: Int32Array;
  #freeCount: number;

  /** @param capacity number of counters, at least 1 */
  constructor(capacity: number) {
    this.#keys = Array.from({ length: capacity }, () => undefined);
    const cells = 2 ** Math.ceil(Math.log2(capacity * CELLS_PER_COUNTER));
    this.#tailOf = new Float64Array(cells);
    this.#keptOf = new Int32Array(cells);
    this.#groups = new Int32Array(capacity);
    this.#errors = new Float64Array(capacity);
    this.#counterAt = Int32Array.from({ length: capacity }, (_, counter) => counter);
    this.#placeOf = Int32Array.from(this.#counterAt);
    this.#blockOf = new Int32Array(capacity);
    this.#lastOf = new Int32Array(capacity + 1).fill(capacity - 1);
    this.#countOf = new Float64Array(capacity + 1);
    // At first block 0 has all counters, with count 0.
    this.#freeBlocks = Int32Array.from({ length: capacity }, (_, i) => i + 1);
    this.#freeCount = capacity;
  }

  /** A key that is not kept was added at most this often; 0 while there are unused counters. */
  get least(): number {
    return this.#count(this.#counterAt[0] ?? 0);
  }

  /** Adds a key once. @param group a small whole number >= 0 */
  add(group: number, key: string): void {
    const counters = (this.#counterOf[group] ??= new Map());
    const cell = this.#cellOf(group, key);
    let counter = this.#keptOf[cell] === 0 ? undefined : counters.get(key);
    if (counter === undefined) {
      const before = this.#tailOf[cell] ?? 0;
      if (before < this.least) {
        this.#tailOf[cell] = before + 1;
        return;
      }
      counter = this.#freeLeast();
      counters.set(key, counter);
      this.#keys[counter] = key;
      this.#groups[counter] = group;
      this.#keptOf[cell] = (this.#keptOf[cell] ?? 0) + 1;
      this.#errors[counter] = before;
    }
    this.#increment(counter);
  }

  /** The kept keys, in no particular order. */
  *kept(): Iterable<Kept> {
    for (const [counter, key] of this.#keys.entries()) {
      if (key === undefined) continue;
      const group = this.#groups[counter] ?? 0;
      yield { group, key, count: this.#count(counter), error: this.#errors[counter] ?? 0 };
    }
  }

  /** Two keys in one cell only make the counts less exact, within the bounds. */
  #cellOf(group: number, key: string): number {
    const value = fnv1a(key, FNV_OFFSET_BASIS ^ group);
    return (value ^ (value >>> 15)) & (this.#tailOf.length - 1);
  }

  #count(counter: number): number {
    return this.#countOf[this.#blockOf[counter] ?? 0] ?? 0;
  }

  /**
   * Takes the counter with the smallest count from its key. The count stays, as the next key may have been added
   * that often.
   */
  #freeLeast(): number {
    const counter = this.#counterAt[0] ?? 0;
    const key = this.#keys[counter];
    if (key === undefined) return counter;
    const group = this.#groups[counter] ?? 0;
    this.#counterOf[group]?.delete(key);
    const cell = this.#cellOf(group, key);
    this.#keptOf[cell] = (this.#keptOf[cell] ?? 0) - 1;
    this.#tailOf[cell] = this.#count(counter);
    return counter;
  }

  /** Adds one: the counter moves from the end of its block to the block with the next count. */
  #increment(counter: number): void {
    const block = this.#blockOf[counter] ?? 0;
    const count = (this.#countOf[block] ?? 0) + 1;
    const last = this.#lastOf[block] ?? 0;
    this.#swap(counter, last);
    const next = last + 1 < this.#counterAt.length ? this.#blockAt(last + 1) : block;
    const isAlone = last === 0 || this.#blockAt(last - 1) !== block;
    if (!isAlone) this.#lastOf[block] = last - 1;
    if (this.#countOf[next] === count) {
      this.#blockOf[counter] = next;
      if (isAlone) this.#freeBlocks[this.#freeCount++] = block;
    } else if (isAlone) this.#countOf[block] = count;
    else {
      this.#freeCount -= 1;
      const taken = this.#freeBlocks[this.#freeCount] ?? 0;
      this.#lastOf[taken] = last;
      this.#countOf[taken] = count;
      this.#blockOf[counter] = taken;
    }
  }

  #blockAt(place: number): number {
    return this.#blockOf[this.#counterAt[place] ?? 0] ?? 0;
  }

  #swap(counter: number, place: number): void {
    const from = this.#placeOf[counter] ?? 0;
    const other = this.#counterAt[place] ?? 0;
    this.#counterAt[from] = other;
    this.#placeOf[other] = from;
    this.#counterAt[place] = counter;
    this.#placeOf[counter] = place;
  }
}
