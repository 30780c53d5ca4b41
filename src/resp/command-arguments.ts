/**
 * The arguments of one command, as places in a buffer: a string is made of one only when somebody asks for it. It knows no
 * command.
 */
import { isUtf8 } from 'node:buffer';

const LOWER_TO_UPPER = 0x20;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** Every integer of so many digits is exact as a number. */
const DIGITS_MAX = 15;

/** Those of a command that is kept. */
export interface KeptArguments {
  readonly bytes: Buffer;
  readonly places: Int32Array;
}

export class CommandArguments {
  count = 0;
  readonly #max: number;
  /** Start and end of each. */
  readonly #places: Int32Array;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(max: number) {
    this.#max = max;
    this.#places = new Int32Array(2 * max);
  }

  /** None any more; those to come lie in `bytes`. */
  clear(bytes: Buffer): void {
    this.count = 0;
    this.#bytes = bytes;
  }

  get isFull(): boolean {
    return this.count === this.#max;
  }

  add(start: number, end: number): void {
    this.#places[2 * this.count] = start;
    this.#places[2 * this.count + 1] = end;
    this.count += 1;
  }

  /** They lie in `bytes` now, each so many bytes before where it was. */
  moved(bytes: Buffer, by: number): void {
    this.#bytes = bytes;
    for (let i = 0; i < 2 * this.count; i += 1) this.#places[i]! -= by;
  }

  /** In bytes of their own, for `load`. There is one at least. */
  copy(): KeptArguments {
    const start = this.#start(0);
    const bytes = Buffer.from(this.#bytes.subarray(start, this.#end(this.count - 1)));
    return { bytes, places: this.#places.slice(0, 2 * this.count).map((place) => place - start) };
  }

  /** They are those that were kept. */
  load({ bytes, places }: KeptArguments): void {
    this.#bytes = bytes;
    this.#places.set(places);
    this.count = places.length / 2;
  }

  /** True if argument `index` is `name`, in capitals or not. @param name in capitals */
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

  /** In bytes. */
  lengthOf(index: number): number {
    return this.#end(index) - this.#start(index);
  }

  /** The text of argument `index`; undefined if it is not UTF-8, which replicas could read in more than one way. */
  text(index: number): string | undefined {
    const start = this.#start(index);
    const end = this.#end(index);
    for (let at = start; at < end; at += 1) {
      if ((this.#bytes[at] ?? 0) < 0x80) continue;
      return isUtf8(this.#bytes.subarray(start, end)) ? this.#bytes.toString('utf8', start, end) : undefined;
    }
    return this.#bytes.toString('latin1', start, end);
  }

  /** The bytes of argument `index`, for as long as the arguments are these. */
  bytes(index: number): Buffer {
    return this.#bytes.subarray(this.#start(index), this.#end(index));
  }

  /** For people, in messages: whatever is no UTF-8 is replaced, and the rest is cut off. */
  shown(index: number, maxBytes: number): string {
    const start = this.#start(index);
    return this.#bytes.toString('utf8', start, Math.min(this.#end(index), start + maxBytes));
  }

  /**
   * Argument `index` as an integer in the form that Redis takes: no plus, no spaces, no leading zeros. NaN if it is none, or
   * is beyond what a number holds exactly: no bound lets such a value pass.
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
