/**
 * The most frequent keys of a stream in memory that does not grow: Space-Saving (Metwally, Agrawal and El Abbadi,
 * "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005), behind a filter (Homem and
 * Carvalho, "Finding top-k elements in data streams", Information Sciences 180, 2010). With `capacity` counters and n
 * additions, the count of a key that is kept is too high by its `error` at most, and never too low; a key that is not
 * kept was added `least` times at most; and no error, nor `least`, exceeds n / capacity.
 *
 * The filter bounds how often keys that are not kept were added, by what they hash to. One of them takes a counter
 * only when that bound would exceed `least`: else most keys of a long tail would take one, to lose it to the next.
 *
 * Counters lie in the order of their counts, and those with equal counts are a block: so one more is a matter of a swap, however
 * many counters there are. A key is a text in a group, so that the same text in two groups is two keys without being joined to another.
 */
import { FNV_OFFSET_BASIS, fnv1a } from '../api/text-hash.ts';

/** A key that is kept: added from `count - error` to `count` times. */
export interface Kept {
  readonly group: number;
  readonly key: string;
  readonly count: number;
  readonly error: number;
}

/** So that few keys that are not kept share a cell with one that is, which costs them a search. */
const CELLS_PER_COUNTER = 8;

export class SpaceSaving {
  /** By cell of the filter: no key of it that is not kept was added more often. */
  readonly #tailOf: Float64Array;
  /** By cell: how many of its keys are kept. */
  readonly #keptOf: Int32Array;
  /** By group: which counter a key has. */
  readonly #counterOf: Map<string, number>[] = [];
  /** By counter. */
  readonly #keys: (string | undefined)[];
  readonly #groups: Int32Array;
  readonly #errors: Float64Array;
  readonly #placeOf: Int32Array;
  readonly #blockOf: Int32Array;
  /** By place: the counters, least count first. */
  readonly #counterAt: Int32Array;
  /** By block: the place of its last counter, and the count of all of them; no two blocks have the same. */
  readonly #lastOf: Int32Array;
  readonly #countOf: Float64Array;
  /** Blocks without a counter; one more than there are counters, so that one is always there to be taken. */
  readonly #freeBlocks: Int32Array;
  #freeCount: number;

  /** @param capacity counters, at least 1 */
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
    // Block 0 has all of them, at 0.
    this.#freeBlocks = Int32Array.from({ length: capacity }, (_, i) => i + 1);
    this.#freeCount = capacity;
  }

  /** A key that is not kept was added so often at most; 0 while there is a counter for everyone. */
  get least(): number {
    return this.#count(this.#counterAt[0] ?? 0);
  }

  /** @param group a whole number >= 0, small */
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

  /** In no order. */
  *kept(): Iterable<Kept> {
    for (const [counter, key] of this.#keys.entries()) {
      if (key === undefined) continue;
      const group = this.#groups[counter] ?? 0;
      yield { group, key, count: this.#count(counter), error: this.#errors[counter] ?? 0 };
    }
  }

  /** Keys that meet in a cell cost exactness within the bounds, and nothing else. */
  #cellOf(group: number, key: string): number {
    const value = fnv1a(key, FNV_OFFSET_BASIS ^ group);
    return (value ^ (value >>> 15)) & (this.#tailOf.length - 1);
  }

  #count(counter: number): number {
    return this.#countOf[this.#blockOf[counter] ?? 0] ?? 0;
  }

  /** The counter with the least count loses its key, and keeps its count: the next key may have been added so often. */
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

  /** It leaves its block at the end, for the one with the next count. */
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
