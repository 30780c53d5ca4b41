/**
 * Rows of a fixed number of 32-bit words, stored in segments. A million rows are a few hundred objects, and growing or
 * shrinking touches only one segment. It does not know what a row means.
 */

import { assert } from '../assert.ts';

/** No row: the end of links, and the result of lookups that find nothing. */
export const NONE = 0xffff_ffff;

/** Ids are below 2^31 and wrap around there, so no id equals `NONE`. */
const ID_MASK = 0x7fff_ffff;

/** The id that is `count` rows after `id`. */
export function idBehind(id: number, count: number): number {
  return (id + count) & ID_MASK;
}

/** How many rows `id` is after `first`. */
export function rowsBetween(first: number, id: number): number {
  return (id - first) & ID_MASK;
}

/** The first segment starts this small, because most states are small. */
const FIRST_ROWS = 8;

const NO_WORDS: Uint32Array = new Uint32Array(0);
const NO_DOUBLES: Float64Array = new Float64Array(0);

/**
 * A queue of rows with consecutive ids that wrap around. Rows are appended at the end and dropped at either end. If the
 * front is never dropped, the ids are 0 to `size - 1`.
 */
export class Rows {
  readonly #wordsPerRow: number;
  readonly #rowsPerSegment: number;
  readonly #shift: number;
  /** Segment `s` is at index `s & #directoryMask`: the directory has at least as many places as there are segments. */
  #words: Uint32Array[] = [];
  #doubles: Float64Array[] = [];
  #directoryMask = -1;
  /** How many segments are held, from that of the oldest row on; the last one may be empty. */
  #held = 0;
  #first: number;
  #next: number;

  /**
   * @param wordsPerRow even if `doubles` is used
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

  /** The id that the next row will get. */
  get next(): number {
    return this.#next;
  }

  /** The segment of a row. The words of the row begin at `at(id)`. Valid until a row is appended or dropped. */
  words(id: number): Uint32Array {
    return this.#words[(id >>> this.#shift) & this.#directoryMask]!;
  }

  /** The same segment as 64-bit floats. The floats of the row begin at `at(id) / 2`. */
  doubles(id: number): Float64Array {
    return this.#doubles[(id >>> this.#shift) & this.#directoryMask]!;
  }

  at(id: number): number {
    return (id & (this.#rowsPerSegment - 1)) * this.#wordsPerRow;
  }

  /** Adds a row at the end and returns its id. Its words are not initialized. */
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
    // Release the empty segment only when the one before is half empty as well, so that going back and forth at the
    // boundary costs nothing.
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

  /** How far `segment` is after the first one. Segment numbers wrap around with the ids. */
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
