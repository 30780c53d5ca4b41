/**
 * Rows of a fixed number of 32-bit words, in segments: so that a million of them are a few hundred objects, and neither
 * growing nor shrinking ever touches more than one segment. It knows nothing of what a row means.
 */

import { assert } from '../assert.ts';

/** No row: links and lookups end with it. */
export const NONE = 0xffff_ffff;

/** Ids are below 2^31 and wrap around there, so that none of them ever is `NONE`. */
const ID_MASK = 0x7fff_ffff;

/** The id `count` rows behind that of another. */
export function idBehind(id: number, count: number): number {
  return (id + count) & ID_MASK;
}

/** How many rows `id` is behind `first`. */
export function rowsBetween(first: number, id: number): number {
  return (id - first) & ID_MASK;
}

/** The first segment starts this small; most states are. */
const FIRST_ROWS = 8;

const NO_WORDS: Uint32Array = new Uint32Array(0);
const NO_DOUBLES: Float64Array = new Float64Array(0);

/**
 * Rows have consecutive ids, which wrap around. They are appended at one end and dropped at either. Of rows
 * whose front is never dropped the ids are 0 to `size - 1`.
 */
export class Rows {
  readonly #wordsPerRow: number;
  readonly #rowsPerSegment: number;
  readonly #shift: number;
  /** Segment `s` is at `s & #directoryMask`: there are at least as many places as segments held. */
  #words: Uint32Array[] = [];
  #doubles: Float64Array[] = [];
  #directoryMask = -1;
  /** Segments held, beginning with that of the oldest row; the last one may hold no row yet. */
  #held = 0;
  #first: number;
  #next: number;

  /**
   * @param wordsPerRow even where `doubles` is used
   * @param rowsPerSegment a power of two
   * @param firstId the id of the first row
   */
  constructor(wordsPerRow: number, rowsPerSegment: number, firstId = 0) {
    this.#wordsPerRow = wordsPerRow;
    this.#rowsPerSegment = rowsPerSegment;
    this.#shift = 31 - Math.clz32(rowsPerSegment);
    assert(1 << this.#shift === rowsPerSegment, 'a segment has a power of two of rows');
    this.#first = firstId;
    this.#next = firstId;
  }

  get size(): number {
    return rowsBetween(this.#first, this.#next);
  }

  /** The id of the oldest row. */
  get first(): number {
    return this.#first;
  }

  /** The id that the next row will have. */
  get next(): number {
    return this.#next;
  }

  /** The segment of a row, whose words begin at `at(id)`. Valid until the next row is appended or dropped. */
  words(id: number): Uint32Array {
    return this.#words[(id >>> this.#shift) & this.#directoryMask]!;
  }

  /** The same segment as 64-bit floats: a row's begin at half of `at(id)`. */
  doubles(id: number): Float64Array {
    return this.#doubles[(id >>> this.#shift) & this.#directoryMask]!;
  }

  at(id: number): number {
    return (id & (this.#rowsPerSegment - 1)) * this.#wordsPerRow;
  }

  /** Adds a row at the end and returns its id. Its words hold anything. */
  append(): number {
    const id = this.#next;
    if (this.size === ID_MASK) assert(false, 'no id is left for another row');
    const segment = id >>> this.#shift;
    if (this.#behindFirst(segment) === this.#held) this.#hold(segment);
    if (this.at(id) >= this.words(id).length) this.#growTo(id);
    this.#next = idBehind(id, 1);
    return id;
  }

  /** Drops the newest row. */
  dropLast(): void {
    assert(this.size > 0, 'there is no row to drop');
    const id = idBehind(this.#next, -1);
    this.#next = id;
    // An empty segment goes when the one before is half empty too: who goes back and forth at its edge pays nothing.
    const half = this.#rowsPerSegment >>> 1;
    if (this.size === 0) this.#releaseAll();
    else if ((id & (this.#rowsPerSegment - 1)) <= half) this.#releaseAfter(id >>> this.#shift);
  }

  /** Drops the oldest row. */
  dropFirst(): void {
    assert(this.size > 0, 'there is no row to drop');
    const segment = this.#firstSegment;
    this.#first = idBehind(this.#first, 1);
    if (this.size === 0) this.#releaseAll();
    else if (this.#firstSegment !== segment) this.#release(segment);
  }

  /** Copies the words of one row over those of another. */
  copy(from: number, to: number): void {
    const source = this.words(from);
    const target = this.words(to);
    const sourceAt = this.at(from);
    const targetAt = this.at(to);
    for (let i = 0; i < this.#wordsPerRow; i += 1) target[targetAt + i] = source[sourceAt + i]!;
  }

  get #firstSegment(): number {
    return this.#first >>> this.#shift;
  }

  /** How far `segment` is behind the first one. Segments wrap around with the ids. */
  #behindFirst(segment: number): number {
    return (segment - this.#firstSegment) & (ID_MASK >>> this.#shift);
  }

  #hold(segment: number): void {
    if (this.#held > this.#directoryMask) this.#growDirectory();
    const rows = this.#held === 0 ? FIRST_ROWS : this.#rowsPerSegment;
    this.#held += 1;
    this.#put(segment, new Uint32Array(Math.min(rows, this.#rowsPerSegment) * this.#wordsPerRow));
  }

  #put(segment: number, words: Uint32Array): void {
    const place = segment & this.#directoryMask;
    this.#words[place] = words;
    if (this.#wordsPerRow % 2 === 0) this.#doubles[place] = new Float64Array(words.buffer);
  }

  /** Makes the segment of `id` long enough for it. */
  #growTo(id: number): void {
    const segment = id >>> this.#shift;
    const words = this.words(id);
    let length = words.length;
    while (length <= this.at(id)) length *= 2;
    const grown = new Uint32Array(Math.min(length, this.#rowsPerSegment * this.#wordsPerRow));
    grown.set(words);
    this.#put(segment, grown);
  }

  #growDirectory(): void {
    const places = Math.max(1, (this.#directoryMask + 1) * 2);
    const words = Array.from({ length: places }, () => NO_WORDS);
    const doubles = Array.from({ length: places }, () => NO_DOUBLES);
    for (let i = 0; i < this.#held; i += 1) {
      const segment = this.#firstSegment + i;
      words[segment & (places - 1)] = this.#words[segment & this.#directoryMask]!;
      doubles[segment & (places - 1)] = this.#doubles[segment & this.#directoryMask]!;
    }
    this.#words = words;
    this.#doubles = doubles;
    this.#directoryMask = places - 1;
  }

  #releaseAfter(segment: number): void {
    while (this.#held > this.#behindFirst(segment) + 1) this.#release(this.#firstSegment + this.#held - 1);
  }

  #release(segment: number): void {
    this.#words[segment & this.#directoryMask] = NO_WORDS;
    this.#doubles[segment & this.#directoryMask] = NO_DOUBLES;
    this.#held -= 1;
  }

  #releaseAll(): void {
    this.#words = [];
    this.#doubles = [];
    this.#directoryMask = -1;
    this.#held = 0;
  }
}
