/**
 * A hash index over rows. It uses linear hashing (Litwin 1980): the table grows and shrinks by one bucket at a time, so
 * adding the millionth key takes no longer than adding the tenth. It compares no keys: it yields the few rows with a
 * hash, and the caller compares.
 */

import { NONE, Rows } from './rows.ts';

const BUCKETS_MIN = 4;
const BUCKETS_PER_SEGMENT = 8_192;

/** The words of a row that belong to the index. */
export interface IndexWords {
  readonly hash: number;
  readonly next: number;
}

/** An index over the rows of one `Rows`. */
export class LinearIndex {
  readonly #rows: Rows;
  readonly #hashWord: number;
  readonly #nextWord: number;
  /** The first row of each bucket. */
  readonly #buckets = new Rows(1, BUCKETS_PER_SEGMENT);
  #bucketCount = 0;
  /** The largest power of two that is at most `#bucketCount`, minus 1. */
  #lowMask = 0;
  #size = 0;

  constructor(rows: Rows, { hash, next }: IndexWords) {
    this.#rows = rows;
    this.#hashWord = hash;
    this.#nextWord = next;
  }

  get size(): number {
    return this.#size;
  }

  /** The first row with this hash, or `NONE`. Continue with `after`. */
  first(hash: number): number {
    if (this.#bucketCount === 0) return NONE;
    return this.#withHash(this.#head(this.#bucketOf(hash)), hash);
  }

  /** The next row with the same hash after `row`, or `NONE`. */
  after(row: number, hash: number): number {
    return this.#withHash(this.#next(row), hash);
  }

  /** Adds a row, which must not be in the index. */
  insert(row: number, hash: number): void {
    this.#rows.words(row)[this.#rows.at(row) + this.#hashWord] = hash;
    this.#size += 1;
    if (this.#bucketCount === 0) while (this.#bucketCount < BUCKETS_MIN) this.#addBucket();
    else if (this.#size > this.#bucketCount) this.#split();
    this.#push(this.#bucketOf(hash), row);
  }

  /** Removes a row from the index. */
  remove(row: number): void {
    this.#relink(row, this.#next(row));
    this.#size -= 1;
    // Up to two per removal; otherwise the buckets would shrink more slowly than the rows.
    for (let merged = 0; merged < 2; merged += 1) {
      if (this.#bucketCount > BUCKETS_MIN && this.#size < this.#bucketCount >>> 1) this.#merge();
    }
  }

  /** The row `from` was copied to `to` and is about to be dropped. */
  moved(from: number, to: number): void {
    this.#relink(from, to);
  }

  /** Makes the link that points to `row` point to `other`. */
  #relink(row: number, other: number): void {
    const bucket = this.#bucketOf(this.#hash(row));
    let before = this.#head(bucket);
    if (before === row) {
      this.#setHead(bucket, other);
      return;
    }
    for (;;) {
      const next = this.#next(before);
      if (next === row) break;
      before = next;
    }
    this.#setNext(before, other);
  }

  #withHash(from: number, hash: number): number {
    let row = from;
    while (row !== NONE && this.#hash(row) !== hash) row = this.#next(row);
    return row;
  }

  #bucketOf(hash: number): number {
    const high = hash & (this.#lowMask * 2 + 1);
    return high < this.#bucketCount ? high : hash & this.#lowMask;
  }

  #addBucket(): void {
    const bucket = this.#buckets.append();
    this.#setHead(bucket, NONE);
    this.#bucketCount += 1;
    if (this.#bucketCount > this.#lowMask * 2 + 1) this.#lowMask = this.#lowMask * 2 + 1;
  }

  /** Adds a bucket and moves its rows there, all of which were in one bucket so far. */
  #split(): void {
    const bucket = this.#bucketCount;
    const from = bucket & this.#lowMask;
    let row = this.#head(from);
    this.#addBucket();
    this.#setHead(from, NONE);
    while (row !== NONE) {
      const next = this.#next(row);
      this.#push(this.#bucketOf(this.#hash(row)), row);
      row = next;
    }
  }

  /** Removes the last bucket; its rows go back to the bucket it was split from. */
  #merge(): void {
    const bucket = this.#bucketCount - 1;
    let row = this.#head(bucket);
    this.#buckets.dropLast();
    this.#bucketCount = bucket;
    if (bucket <= this.#lowMask) this.#lowMask >>>= 1;
    while (row !== NONE) {
      const next = this.#next(row);
      this.#push(this.#bucketOf(this.#hash(row)), row);
      row = next;
    }
  }

  #push(bucket: number, row: number): void {
    this.#setNext(row, this.#head(bucket));
    this.#setHead(bucket, row);
  }

  #head(bucket: number): number {
    return this.#buckets.words(bucket)[this.#buckets.at(bucket)]!;
  }

  #setHead(bucket: number, row: number): void {
    this.#buckets.words(bucket)[this.#buckets.at(bucket)] = row;
  }

  #hash(row: number): number {
    return this.#rows.words(row)[this.#rows.at(row) + this.#hashWord]!;
  }

  #next(row: number): number {
    return this.#rows.words(row)[this.#rows.at(row) + this.#nextWord]!;
  }

  #setNext(row: number, next: number): void {
    this.#rows.words(row)[this.#rows.at(row) + this.#nextWord] = next;
  }
}
