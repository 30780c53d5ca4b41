/**
 * Memory for what varies in length, names and runs of grants: blocks of a few sizes, cut from slabs of one size each.
 * Blocks of one size lie without a gap: the last of them moves into the place of one that is given back, and its owner
 * is told. So a few who stay do not keep the memory of the many who left. It knows nothing of what a block holds.
 */

import { assert } from '../assert.ts';

/** Blocks are measured in units of 8 bytes. */
export const UNIT_BYTES = 8;

/** A slab of small blocks has at most this many units; a larger block has one of its own. */
const SLAB_UNITS_MAX = 8_192;
const SLAB_SHIFT = 13;
const FIRST_SLAB_UNITS = 32;
/** 64 KiB of blocks, and whose they are, if there are not many of them. */
const SLAB_BYTES = SLAB_UNITS_MAX * UNIT_BYTES + 256;
/** A slab that is almost as long is so exactly: so what one size gives back fits another. */
const ALMOST_SLAB_BYTES = (SLAB_BYTES * 15) / 16;
/** Who holds less keeps no spare slab. */
const SPARE_FROM_BYTES = SLAB_BYTES * 16;
const OWNER_BYTES = 4;
const SLABS_MAX = 1 << 19;
/** Shorter blocks are moved faster word by word. */
const LOOP_WORDS_MAX = 32;

/** The block of `owner`, as `allocate` or `setOwner` was told, lies at `address` now. */
type Moved = (owner: number, address: number) => void;

/** The bytes of a slab as what they may be read as. A block's first word is at `wordOf(address)`. */
export interface Slab {
  readonly buffer: ArrayBuffer;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly doubles: Float64Array;
  /** Of each block. */
  readonly owners: Uint32Array;
  readonly blockUnits: number;
  /** Blocks in use; they are the first ones. */
  used: number;
}

/** The slabs of one size, by number: full ones, one that has a block in use at least, and at most one that has none. */
interface SizeClass {
  readonly blockUnits: number;
  readonly numbers: number[];
  /** How many of them have a block in use. */
  inUse: number;
  /** In all of them. */
  units: number;
}

/**
 * What is held is what is in use and, of each size, one and a half slabs at most, and a sixteenth for whichever size needs
 * it next. A slab is not larger than 64 KiB or a block, nor than all others of its size together.
 */
export class BlockPool {
  /** By number; the number of a slab that is gone is used again. */
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #classes: (SizeClass | undefined)[] = [];
  readonly #moved: Moved;
  /**
   * A slab that was given back: blocks that grow leave one size and need the next. Left to the collector, what they
   * leave would pile up until it comes, and the process keep that for good.
   */
  #spare: ArrayBuffer | undefined;
  #bytes = 0;

  constructor(moved: Moved) {
    this.#moved = moved;
  }

  /** Bytes held, used or not. */
  get byteLength(): number {
    return this.#bytes;
  }

  /** A block of `roomOf(units)` units, which holds anything. Its address, until it moves, is below 2^32 - 1. */
  allocate(units: number, owner: number): number {
    const sizeClass = classOf(units);
    const held = (this.#classes[sizeClass] ??= emptyClass(sizeClass));
    let slab = this.#lastInUse(held);
    if (slab === undefined || slab.used === slab.owners.length) {
      if (held.inUse === held.numbers.length) this.#addSlab(held);
      held.inUse += 1;
      slab = this.#lastInUse(held)!;
    }
    slab.owners[slab.used] = owner;
    slab.used += 1;
    return addressOf(held, slab.used - 1);
  }

  /** Gives a block back; another may move. `units` as it was asked for, or `roomOf` it. */
  free(address: number, units: number): void {
    const slab = this.#slabs[address >>> SLAB_SHIFT];
    const held = this.#classes[classOf(units)];
    if (slab === undefined || slab.blockUnits !== held?.blockUnits) {
      assert(false, `no block of ${units} units is at ${address}`);
    }
    const last = this.#lastInUse(held)!;
    last.used -= 1;
    const lastAddress = addressOf(held, last.used);
    if (lastAddress !== address) {
      const owner = last.owners[last.used]!;
      copyWords(last.words, wordOf(lastAddress), slab.words, wordOf(address), held.blockUnits * 2);
      this.setOwner(address, owner);
      this.#moved(owner, address);
    }
    if (last.used === 0) held.inUse -= 1;
    this.#dropEmpty(held);
  }

  /** The block belongs to another owner from now on. */
  setOwner(address: number, owner: number): void {
    const { owners, blockUnits } = this.#slabs[address >>> SLAB_SHIFT]!;
    owners[(address & (SLAB_UNITS_MAX - 1)) / blockUnits] = owner;
  }

  slab(address: number): Slab {
    return this.#slabs[address >>> SLAB_SHIFT]!;
  }

  words(address: number): Uint32Array {
    return this.#slabs[address >>> SLAB_SHIFT]!.words;
  }

  #lastInUse({ numbers, inUse }: SizeClass): Slab | undefined {
    return inUse === 0 ? undefined : this.#slabs[numbers[inUse - 1]!];
  }

  #addSlab(held: SizeClass): void {
    const { blockUnits } = held;
    // As many units as there are already: few blocks take little, and many take few slabs.
    const wanted = Math.min(SLAB_UNITS_MAX, Math.max(FIRST_SLAB_UNITS, held.units));
    const blocksMax = Math.floor(SLAB_BYTES / (blockUnits * UNIT_BYTES + OWNER_BYTES));
    const blocks = Math.max(1, Math.min(blocksMax, Math.floor(wanted / blockUnits)));
    const units = blocks * blockUnits;
    const bytes = units * UNIT_BYTES + blocks * OWNER_BYTES;
    const buffer = this.#take(bytes > ALMOST_SLAB_BYTES ? Math.max(bytes, SLAB_BYTES) : bytes);
    const number = this.#freeNumbers.pop() ?? this.#slabs.length;
    assert(number < SLABS_MAX, 'no number is left for another slab');
    this.#slabs[number] = {
      buffer,
      words: new Uint32Array(buffer, 0, units * 2),
      bytes: new Uint8Array(buffer, 0, units * UNIT_BYTES),
      doubles: new Float64Array(buffer, 0, units),
      owners: new Uint32Array(buffer, units * UNIT_BYTES, blocks),
      blockUnits,
      used: 0,
    };
    held.numbers.push(number);
    held.units += units;
  }

  /** An empty slab goes when the one before is half empty too: who goes back and forth at its edge pays nothing. */
  #dropEmpty(held: SizeClass): void {
    if (held.inUse === held.numbers.length) return;
    const last = this.#lastInUse(held);
    if (last !== undefined && last.owners.length > 1 && last.used > last.owners.length >>> 1) return;
    const number = held.numbers.pop()!;
    const { words, buffer } = this.#slabs[number]!;
    held.units -= words.length >>> 1;
    this.#slabs[number] = undefined;
    this.#freeNumbers.push(number);
    this.#giveBack(buffer);
  }

  #take(bytes: number): ArrayBuffer {
    const spare = this.#spare;
    if (spare?.byteLength === bytes) {
      this.#spare = undefined;
      return spare;
    }
    this.#bytes += bytes;
    return new ArrayBuffer(bytes);
  }

  #giveBack(buffer: ArrayBuffer): void {
    this.#bytes -= buffer.byteLength;
    const isLarge = this.#bytes >= SPARE_FROM_BYTES;
    if (isLarge && this.#spare === undefined && buffer.byteLength === SLAB_BYTES) {
      this.#spare = buffer;
      this.#bytes += SLAB_BYTES;
    } else if (!isLarge && this.#spare !== undefined) {
      this.#spare = undefined;
      this.#bytes -= SLAB_BYTES;
    }
  }
}

/** The index of a block's first word in its slab; its first byte is at four times that, its first float at half. */
export function wordOf(address: number): number {
  return (address & (SLAB_UNITS_MAX - 1)) * 2;
}

/** How many units a block for `units` has. */
export function roomOf(units: number): number {
  return unitsOf(classOf(units));
}

/** The sizes are 1 to 8, 10, 12, 14, 16, 20, 24, ...: a block is never more than a quarter larger than asked for. */
function classOf(units: number): number {
  const shift = Math.max(0, 29 - Math.clz32(units - 1));
  return shift * 4 + ((units - 1) >>> shift);
}

function unitsOf(sizeClass: number): number {
  const shift = Math.max(0, (sizeClass >>> 2) - 1);
  return (sizeClass - shift * 4 + 1) << shift;
}

function emptyClass(sizeClass: number): SizeClass {
  return { blockUnits: unitsOf(sizeClass), numbers: [], inUse: 0, units: 0 };
}

/** Of block `place` in the last slab that is in use. */
function addressOf({ numbers, inUse, blockUnits }: SizeClass, place: number): number {
  return numbers[inUse - 1]! * SLAB_UNITS_MAX + place * blockUnits;
}

/** Copies `count` words of `source` from `from` on to `target` from `to` on. */
export function copyWords(
  source: Uint32Array,
  from: number,
  target: Uint32Array,
  to: number,
  count: number,
): void {
  if (count > LOOP_WORDS_MAX) target.set(source.subarray(from, from + count), to);
  else for (let i = 0; i < count; i += 1) target[to + i] = source[from + i]!;
}
