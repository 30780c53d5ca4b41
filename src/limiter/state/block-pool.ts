/**
 * Memory for data of varying length (names and runs of grants): blocks of certain sizes, cut from slabs of one size
 * each. Blocks of one size have no gaps: when one is freed, the last one moves into its place and its owner is
 * notified. So a few remaining keys cannot keep the memory of many that left. The pool does not know what a block
 * contains.
 */

import { assert } from '../assert.ts';

/** Blocks are measured in units of 8 bytes. */
export const UNIT_BYTES = 8;

/** A slab of small blocks has at most this many units; a larger block has a slab of its own. */
const SLAB_UNITS_MAX = 8_192;
const SLAB_SHIFT = 13;
const FIRST_SLAB_UNITS = 32;
/** 64 KiB of blocks and, if they are not too many, their owners. */
const SLAB_BYTES = SLAB_UNITS_MAX * UNIT_BYTES + 256;
/**
 * A slab that is almost this long is made exactly this long, so that a slab released by one size can be reused by
 * another.
 */
const ALMOST_SLAB_BYTES = (SLAB_BYTES * 15) / 16;
/** A pool below this size keeps no spare slab. */
const SPARE_FROM_BYTES = SLAB_BYTES * 16;
const OWNER_BYTES = 4;
const SLABS_MAX = 1 << 19;
/** Shorter blocks are copied faster word by word. */
const LOOP_WORDS_MAX = 32;

/** The block of `owner`, as passed to `allocate` or `setOwner`, is now at `address`. */
type Moved = (owner: number, address: number) => void;

/** The bytes of a slab in different views. The first word of a block is at `wordOf(address)`. */
export interface Slab {
  readonly buffer: ArrayBuffer;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly doubles: Float64Array;
  /** The owner of each block. */
  readonly owners: Uint32Array;
  readonly blockUnits: number;
  /** Number of blocks in use; they are the first ones. */
  used: number;
}

/**
 * The numbers of the slabs of one size, in this order: full ones, one with at least one block in use, at most one empty
 * one.
 */
interface SizeClass {
  readonly blockUnits: number;
  readonly numbers: number[];
  /** How many of the slabs have a block in use. */
  inUse: number;
  /** Units in all of the slabs. */
  units: number;
}

/**
 * Holds the memory in use plus, per size, at most one and a half slabs, plus a sixteenth for whichever size needs it
 * next. A slab is no larger than 64 KiB or one block, and no larger than all others of its size together.
 */
export class BlockPool {
  /** By number. The number of a released slab is reused. */
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #classes: (SizeClass | undefined)[] = [];
  readonly #moved: Moved;
  /**
   * A slab that was released. Growing blocks leave one size and need the next. Left to the garbage collector, the
   * released memory would pile up until it runs, and the process would keep it for good.
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

  /**
   * Allocates a block of `roomOf(units)` units, not initialized. Returns its address (below 2^32 - 1), which is valid
   * until the block moves.
   */
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

  /** Frees a block; another block may move. `units` is as passed to `allocate`, or `roomOf` that. */
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

  /** Changes the owner of a block. */
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
    // As many units as the size already has: few blocks take little memory, and many blocks take few slabs.
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

  /**
   * Release the empty slab only when the one before is half empty as well, so that going back and forth at the boundary
   * costs nothing.
   */
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

/**
 * The index of a block's first word in its slab. The index of its first byte is four times that, of its first float
 * half of it.
 */
export function wordOf(address: number): number {
  return (address & (SLAB_UNITS_MAX - 1)) * 2;
}

/** The size of a block that is allocated for `units`. */
export function roomOf(units: number): number {
  return unitsOf(classOf(units));
}

/** The sizes are 1 to 8, 10, 12, 14, 16, 20, 24, ...: a block is at most a quarter larger than requested. */
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

/** The address of block `place` in the last slab that is in use. */
function addressOf({ numbers, inUse, blockUnits }: SizeClass, place: number): number {
  return numbers[inUse - 1]! * SLAB_UNITS_MAX + place * blockUnits;
}

/** Copies `count` words from `source`, starting at `from`, to `target`, starting at `to`. */
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
