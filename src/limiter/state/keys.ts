/**
 * Keys by name and by slot. Slots are 0 to `size - 1`; when a key is removed, the last key moves into its slot. Only
 * the time of a key's last grant is kept here; a meter keeps the grants themselves in the first words of the same rows.
 * So a decision reads one place in memory per key, and waits for one cache miss.
 */

import { BlockPool, wordOf } from './block-pool.ts';
import { LinearIndex } from './linear-index.ts';
import { NONE, Rows } from './rows.ts';
import type { StateSize } from './state-size.ts';
import { type TextBytes, unitsOfText } from './text-bytes.ts';

/** The words of a key in its row. A lookup reads only these four. */
const HASH = 0;
const NEXT = 1;
const NAME = 2;
const NAME_BYTES = 3;
/** Then two floats; these are their indexes among the floats of the key. */
const MADE_MILLIS = 2;
const SINCE_INDEX = 3;
const KEY_WORDS = 8;
/** If a meter uses the same row, its words come first, followed by those of the key. */
const METER_WORDS = 8;
const ROWS_PER_SEGMENT = 2_048;

/** Rows for the keys of one meter. The meter appends, moves and drops them. */
export function newKeyRows(): Rows {
  return new Rows(METER_WORDS + KEY_WORDS, ROWS_PER_SEGMENT);
}

/** The byte range of a name. */
interface NameView {
  bytes: Uint8Array;
  nameFrom: number;
  nameBytes: number;
}

/** The keys of one table. */
export class Keys {
  readonly #size: StateSize;
  readonly #rows: Rows;
  /** No meter appends, moves and drops the rows, so this class does it. */
  readonly #ownsRows: boolean;
  /** The first word of a key in its row. */
  readonly #firstWord: number;
  readonly #index: LinearIndex;
  /** The blocks of names; the owner of a block is its slot. */
  readonly #pool = new BlockPool((slot, address) => {
    this.#rows.words(slot)[this.#at(slot) + NAME] = address;
  });

  /** @param meterRows see `newKeyRows`; absent if no meter keeps anything of these keys */
  constructor(size: StateSize, meterRows?: Rows) {
    this.#size = size;
    this.#rows = meterRows ?? new Rows(KEY_WORDS, ROWS_PER_SEGMENT);
    this.#ownsRows = meterRows === undefined;
    const firstWord = this.#ownsRows ? 0 : METER_WORDS;
    this.#firstWord = firstWord;
    this.#index = new LinearIndex(this.#rows, { hash: firstWord + HASH, next: firstWord + NEXT });
  }

  get size(): number {
    return this.#rows.size;
  }

  /** The slot of the key with this name, or `NONE`. */
  find(name: TextBytes): number {
    const { hash } = name;
    let slot = this.#index.first(hash);
    while (slot !== NONE) {
      const row = this.#rows.words(slot);
      const at = this.#at(slot);
      if (row[at + NAME_BYTES] === name.length && name.equals(this.#pool, row[at + NAME]!)) return slot;
      slot = this.#index.after(slot, hash);
    }
    return NONE;
  }

  /** The slots of all keys that were added with this hash. Nothing may be added or removed meanwhile. */
  *withHash(hash: number): Generator<number, void> {
    for (let slot = this.#index.first(hash); slot !== NONE; slot = this.#index.after(slot, hash)) yield slot;
  }

  /** Adds a key with a new name in the next slot, which is the row that its meter has just appended. */
  add(name: TextBytes, madeMillis: number, sinceIndex = 0): number {
    const slot = this.#ownsRows ? this.#rows.append() : this.#rows.size - 1;
    const address = this.#pool.allocate(name.units, slot);
    name.store(this.#pool, address);
    const row = this.#rows.words(slot);
    const at = this.#at(slot);
    row[at + NAME] = address;
    row[at + NAME_BYTES] = name.length;
    this.setMadeMillis(slot, madeMillis);
    this.setSinceIndex(slot, sinceIndex);
    this.#index.insert(slot, name.hash);
    this.#size.keys += 1;
    this.#size.keyTextBytes += name.length;
    return slot;
  }

  /** Forgets the key in `slot`. The last key takes its place once its meter has moved the row. */
  remove(slot: number): void {
    const row = this.#rows.words(slot);
    const at = this.#at(slot);
    const length = row[at + NAME_BYTES]!;
    this.#size.keys -= 1;
    this.#size.keyTextBytes -= length;
    this.#pool.free(row[at + NAME]!, unitsOfText(length));
    this.#index.remove(slot);
    const last = this.#rows.size - 1;
    if (slot !== last) {
      this.#pool.setOwner(this.#rows.words(last)[this.#at(last) + NAME]!, slot);
      this.#index.moved(last, slot);
      if (this.#ownsRows) this.#rows.copy(last, slot);
    }
    if (this.#ownsRows) this.#rows.dropLast();
  }

  /** Makes `into` point to the name of a key. Valid until a key is removed. */
  readName<T extends NameView>(slot: number, into: T): T {
    const row = this.#rows.words(slot);
    const at = this.#at(slot);
    const name = row[at + NAME]!;
    into.bytes = this.#pool.slab(name).bytes;
    into.nameFrom = wordOf(name) * 4;
    into.nameBytes = row[at + NAME_BYTES]!;
    return into;
  }

  /**
   * Group time of the key's last grant (not its timestamp). Later for a key that is kept for longer: see
   * `KeyTable`.
   */
  madeMillisAt(slot: number): number {
    return this.#rows.doubles(slot)[(this.#at(slot) >>> 1) + MADE_MILLIS]!;
  }

  setMadeMillis(slot: number, millis: number): void {
    this.#rows.doubles(slot)[(this.#at(slot) >>> 1) + MADE_MILLIS] = millis;
  }

  /** The entry since which the key has been known, with its rule unchanged for it: see `KeyTable.refund`. */
  sinceIndexAt(slot: number): number {
    return this.#rows.doubles(slot)[(this.#at(slot) >>> 1) + SINCE_INDEX]!;
  }

  setSinceIndex(slot: number, index: number): void {
    this.#rows.doubles(slot)[(this.#at(slot) >>> 1) + SINCE_INDEX] = index;
  }

  #at(slot: number): number {
    return this.#rows.at(slot) + this.#firstWord;
  }
}
