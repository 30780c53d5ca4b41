/**
 * Payloads as bytes, for what nodes say to each other most: integers of 7 bits a byte, lowest first, and byte strings behind
 * their length. Reading trusts nothing: what is out of its bounds is a FrameError. What the fields mean is said elsewhere.
 */
import { FrameError } from './frame.ts';

const FIRST_BYTES = 4_096;
/** Of one integer. */
const INTEGER_BYTES_MAX = 8;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** One payload after the other. */
export class BytesOut {
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Begins anew: what an encoder that threw has left is nobody's. */
  clear(): void {
    this.#length = 0;
  }

  /** What was written since this was called last. */
  take(): Buffer {
    const taken = Buffer.allocUnsafe(this.#length);
    this.#bytes.copy(taken, 0, 0, this.#length);
    this.#length = 0;
    return taken;
  }

  /** A safe integer >= 0. */
  integer(value: number): void {
    if (this.#length + INTEGER_BYTES_MAX > this.#bytes.length) this.#grow(INTEGER_BYTES_MAX);
    const bytes = this.#bytes;
    let rest = value;
    for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) bytes[this.#length++] = (rest % 128) | 0x80;
    for (; rest >= 0x80; rest >>>= 7) bytes[this.#length++] = (rest & 0x7f) | 0x80;
    bytes[this.#length++] = rest;
  }

  integers(values: readonly number[]): void {
    this.integer(values.length);
    for (const value of values) this.integer(value);
  }

  flag(value: boolean): void {
    this.integer(value ? 1 : 0);
  }

  byteString(value: Uint8Array): void {
    this.integer(value.length);
    if (this.#length + value.length > this.#bytes.length) this.#grow(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Well-formed text. */
  text(value: string): void {
    this.byteString(Buffer.from(value));
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + more));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

export class BytesIn {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  integer(name: string): number {
    const byte = this.#bytes[this.#at];
    // Most have one byte.
    if (byte !== undefined && byte < 0x80) {
      this.#at += 1;
      return byte;
    }
    let value = 0;
    let scale = 1;
    for (let i = 0; i < INTEGER_BYTES_MAX; i += 1) {
      const next = this.#bytes[this.#at];
      if (next === undefined) throw new FrameError(`${name} ends too early`);
      this.#at += 1;
      value += (next & 0x7f) * scale;
      if (next < 0x80) {
        if (!Number.isSafeInteger(value)) throw new FrameError(`${name} is too large`);
        return value;
      }
      scale *= 128;
    }
    throw new FrameError(`${name} has no end`);
  }

  /** How many of something follow, of which each takes a byte at least. */
  count(name: string): number {
    const count = this.integer(name);
    if (count > this.#bytes.length - this.#at) throw new FrameError(`${name}: ${count} are not there`);
    return count;
  }

  integers(name: string): number[] {
    return Array.from({ length: this.count(name) }, () => this.integer(name));
  }

  flag(name: string): boolean {
    const value = this.integer(name);
    if (value > 1) throw new FrameError(`${name} is neither 0 nor 1`);
    return value === 1;
  }

  oneOf<T extends string>(names: readonly T[], name: string): T {
    const value = names[this.integer(name)];
    if (value === undefined) throw new FrameError(`${name} is not one of ${names.join(', ')}`);
    return value;
  }

  text(name: string): string {
    try {
      return utf8.decode(this.byteView(name));
    } catch {
      throw new FrameError(`${name} is not UTF-8`);
    }
  }

  /** A copy: what is received lies in a buffer that serves for more. */
  byteString(name: string): Uint8Array {
    const view = this.byteView(name);
    const copy = new Uint8Array(view.length);
    copy.set(view);
    return copy;
  }

  /** The bytes where they lie: good as long as the payload is. */
  byteView(name: string): Uint8Array {
    const length = this.count(name);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
