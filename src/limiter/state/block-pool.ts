/**
 * Memory for what varies in length, names and runs of grants: blocks of a few sizes, cut from slabs of one size each.
 * So a million of them are a few hundred objects, and the space of a block is used again. It knows nothing of what a
 * block holds.
 */

import { assert } from '../assert.ts';

/** Blocks are measured in units of 8 bytes. */
export const UNIT_BYTES = 8;

/** A slab of small blocks has at most this many units; a larger block has one of its own. */
const SLAB_UNITS_MAX = 8_192;
const SLAB_SHIFT = 13;
const FIRST_SLAB_UNITS = 32;
const SLABS_MAX = 1 << 19;
const NO_BLOCK = 0xffff_ffff;

/** The bytes of a slab as what they may be read as. A block's first word is at `wordOf(address)`. */
export interface Slab {
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly doubles: Float64Array;
  readonly blockUnits: number;
  /** Blocks in use. */
  used: number;
  /** The last block that was freed, in units from the start; each free block begins with that of the next. */
  free: number;
  /** Units from here on were never used. */
  fresh: number;
  /** Its place among the slabs of its size that have room; -1: it is full. */
  place: number;
}

/** Slabs of one size that have room; the last one is filled first. */
interface SizeClass {
  readonly withRoom: number[];
  units: number;
}

export class BlockPool {
  /** By number; the number of a slab that is gone is used again. */
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  readonly #classes: SizeClass[] = [];
  #bytes = 0;

  /** Bytes held, used or not. */
  get byteLength(): number {
    return this.#bytes;
  }

  /** A block of `roomOf(units)` units, which holds anything. Its address is below 2^32 - 1. */
  allocate(units: number): number {
    const sizeClass = classOf(units);
    const held = (this.#classes[sizeClass] ??= { withRoom: [], units: 0 });
    const { withRoom } = held;
    const number = withRoom.length > 0 ? withRoom[withRoom.length - 1]! : this.#addSlab(sizeClass, held);
    const slab = this.#slabs[number]!;
    let at = slab.free;
    if (at === NO_BLOCK) {
      at = slab.fresh;
      slab.fresh += slab.blockUnits;
    } else {
      slab.free = slab.words[at * 2]!;
    }
    slab.used += 1;
    if (slab.free === NO_BLOCK && (slab.fresh + slab.blockUnits) * 2 > slab.words.length) {
      withRoom.pop();
      slab.place = -1;
    }
    return number * SLAB_UNITS_MAX + at;
  }

  /** Gives a block back. `units` as it was asked for, or `roomOf` it. */
  free(address: number, units: number): void {
    const number = address >>> SLAB_SHIFT;
    const slab = this.#slabs[number];
    const sizeClass = classOf(units);
    if (slab === undefined || slab.blockUnits !== unitsOf(sizeClass)) {
      assert(false, `no block of ${units} units is at ${address}`);
    }
    const { withRoom } = this.#classes[sizeClass]!;
    slab.used -= 1;
    if (slab.used === 0 && (withRoom.length > 1 || slab.place < 0)) {
      this.#dropSlab(number, slab, sizeClass);
      return;
    }
    const at = address & (SLAB_UNITS_MAX - 1);
    slab.words[at * 2] = slab.free;
    slab.free = at;
    if (slab.place >= 0) return;
    slab.place = withRoom.length;
    withRoom.push(number);
  }

  slab(address: number): Slab {
    return this.#slabs[address >>> SLAB_SHIFT]!;
  }

  words(address: number): Uint32Array {
    return this.#slabs[address >>> SLAB_SHIFT]!.words;
  }

  #addSlab(sizeClass: number, held: SizeClass): number {
    const blockUnits = unitsOf(sizeClass);
    // As many units as there are already: few blocks take little, and many take few slabs.
    const wanted = Math.min(SLAB_UNITS_MAX, Math.max(FIRST_SLAB_UNITS, held.units));
    const units = Math.max(1, Math.floor(wanted / blockUnits)) * blockUnits;
    const buffer = new ArrayBuffer(units * UNIT_BYTES);
    const number = this.#freeNumbers.pop() ?? this.#slabs.length;
    assert(number < SLABS_MAX, 'no number is left for another slab');
    this.#slabs[number] = {
      words: new Uint32Array(buffer),
      bytes: new Uint8Array(buffer),
      doubles: new Float64Array(buffer),
      blockUnits,
      used: 0,
      free: NO_BLOCK,
      fresh: 0,
      place: held.withRoom.length,
    };
    held.withRoom.push(number);
    held.units += units;
    this.#bytes += buffer.byteLength;
    return number;
  }

  #dropSlab(number: number, slab: Slab, sizeClass: number): void {
    const held = this.#classes[sizeClass]!;
    const { withRoom } = held;
    if (slab.place >= 0) {
      const last = withRoom.pop()!;
      if (last !== number) {
        withRoom[slab.place] = last;
        this.#slabs[last]!.place = slab.place;
      }
    }
    held.units -= slab.doubles.length;
    this.#bytes -= slab.bytes.length;
    this.#slabs[number] = undefined;
    this.#freeNumbers.push(number);
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

/** The sizes are 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ...: a block is never more than half larger than asked for. */
function classOf(units: number): number {
  if (units <= 2) return units - 1;
  const power = 32 - Math.clz32(units - 1);
  return units <= 3 << (power - 2) ? 2 * power - 2 : 2 * power - 1;
}

function unitsOf(sizeClass: number): number {
  if (sizeClass === 0) return 1;
  const power = (sizeClass + 1) >>> 1;
  return sizeClass % 2 === 0 ? 3 << (power - 1) : 1 << power;
}
