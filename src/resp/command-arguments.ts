/**
 * The arguments of one command, as positions in a buffer. A string is only created when it is asked for. This file
 * does not know any command.
 */
import { isUtf8 } from 'node:buffer';

const LOWER_TO_UPPER = 0x20;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** Every integer with this many digits is exact as a JavaScript number. */
const DIGITS_MAX = 15;

/** A copy of the arguments of a command. */
export interface KeptArguments {
  readonly bytes: Buffer;
  readonly places: Int32Array;
}

/** The arguments of one command. */
export class CommandArguments {
  count = 0;
  readonly #max: number;
  /** The start and the end of each argument in `#bytes`. */
  readonly #places: Int32Array;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(max: number) {
    this.#max = max;
    this.#places = new Int32Array(2 * max);
  }

  /** Removes all arguments. New ones are in `bytes`. */
  clear(bytes: Buffer): void {
    this.count = 0;
    this.#bytes = bytes;
  }

  get isFull(): boolean {
    return this.count === this.#max;
  }

  /** Adds the argument from `start` to `end`. */
  add(start: number, end: number): void {
    this.#places[2 * this.count] = start;
    this.#places[2 * this.count + 1] = end;
    this.count += 1;
  }

  /** The arguments were moved to `bytes`, each `by` bytes before its old position. */
  moved(bytes: Buffer, by: number): void {
    this.#bytes = bytes;
    for (let i = 0; i < 2 * this.count; i += 1) this.#places[i]! -= by;
  }

  /** Copies the arguments for a later `load`. There must be at least one. */
  copy(): KeptArguments {
    const start = this.#start(0);
    const bytes = Buffer.from(this.#bytes.subarray(start, this.#end(this.count - 1)));
    return { bytes, places: this.#places.slice(0, 2 * this.count).map((place) => place - start) };
  }

  /** Restores copied arguments. */
  load({ bytes, places }: KeptArguments): void {
    this.#bytes = bytes;
    this.#places.set(places);
    this.count = places.length / 2;
  }

  /** True if argument `index` is `name`, ignoring case. @param name in upper case */
  is(index: number, name: string): boolean {
    const start = this.#start(index);
    if (index >= this.count || this.#end(index) - start !== name.length) return false;
    for (let i = 0; i < name.length; i += 1) {
      const byte = this.#bytes[start + i] ?? 0;
      const upper = byte >= LOWER_A && byte <= LOWER_Z ? byte - LOWER_TO_UPPER : byte;
      if (upper !== name.charCodeAt(i)) return false;
    }
    return true;
  }

  /** The length of argument `index` in bytes. */
  lengthOf(index: number): number {
    return this.#end(index) - this.#start(index);
  }

  /**
   * The text of argument `index`. Undefined if it is not UTF-8, because replicas could decode it in different ways.
   */
  text(index: number): string | undefined {
    const start = this.#start(index);
    const end = this.#end(index);
    for (let at = start; at < end; at += 1) {
      if ((this.#bytes[at] ?? 0) < 0x80) continue;
      return isUtf8(this.#bytes.subarray(start, end)) ? this.#bytes.toString('utf8', start, end) : undefined;
    }
    return this.#bytes.toString('latin1', start, end);
  }

  /** The bytes of argument `index`. They are only valid as long as these arguments are. */
  bytes(index: number): Buffer {
    return this.#bytes.subarray(this.#start(index), this.#end(index));
  }

  /**
   * The text of argument `index` for an error message: invalid UTF-8 is replaced, and the text is cut off after
   * `maxBytes` bytes.
   */
  shown(index: number, maxBytes: number): string {
    const start = this.#start(index);
    return this.#bytes.toString('utf8', start, Math.min(this.#end(index), start + maxBytes));
  }

  /**
   * Argument `index` as an integer in the form that Redis accepts: no plus sign, no spaces, no leading zeros. NaN if
   * it is none, or is too large to be exact; NaN fails every check of bounds.
   */
  integer(index: number): number {
    const start = this.#start(index);
    const end = this.#end(index);
    const isNegative = this.#bytes[start] === MINUS;
    const first = isNegative ? start + 1 : start;
    const digits = end - first;
    if (digits < 1) return Number.NaN;
    if (this.#bytes[first] === ZERO) return digits === 1 && !isNegative ? 0 : Number.NaN;
    let value = 0;
    for (let at = first; at < end; at += 1) {
      const byte = this.#bytes[at] ?? 0;
      if (byte < ZERO || byte > NINE) return Number.NaN;
      value = value * 10 + (byte - ZERO);
    }
    if (digits > DIGITS_MAX && !Number.isSafeInteger(value)) return Number.NaN;
    return isNegative ? -value : value;
  }

  #start(index: number): number {
    return this.#places[2 * index] ?? 0;
  }

  #end(index: number): number {
    return this.#places[2 * index + 1] ?? 0;
  }
}
