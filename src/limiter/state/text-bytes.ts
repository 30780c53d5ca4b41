/**
 * Text on its way into and out of the columns of a state: its UTF-8 bytes, and a hash of them to find them by.
 * It judges no text: what comes here was checked to survive the trip.
 */

import { assert } from '../assert.ts';
import { type BlockPool, wordOf } from './block-pool.ts';

/** Long enough for a key with a request id, or with the id of a stated rule. */
const TEXT_BYTES_MAX = 2_048;

const encoder = new TextEncoder();

/**
 * One text at a time, to look something up by. Users choose the keys: who could foresee their hashes could make all of
 * them meet in one bucket, and a lookup take seconds. So the hash (HalfSipHash-1-3) depends on a seed that the process
 * draws. Nothing that is replicated depends on the hash.
 */
export class TextBytes {
  readonly bytes = new Uint8Array(TEXT_BYTES_MAX);
  readonly #words = new Uint32Array(this.bytes.buffer);
  readonly #seedLow: number;
  readonly #seedHigh: number;
  #length = 0;
  #hash = 0;

  constructor(seed: number) {
    this.#seedLow = seed | 0;
    this.#seedHigh = Math.floor(seed / 0x1_0000_0000) | 0;
  }

  get length(): number {
    return this.#length;
  }

  get hash(): number {
    return this.#hash;
  }

  /** Takes `text`. */
  set(text: string): void {
    this.#length = 0;
    this.append(text);
    this.seal(0);
  }

  /** Takes bytes `from` to `to` of `source`. */
  setBytes(source: Uint8Array, from: number, to: number): void {
    this.#length = 0;
    this.appendBytes(source, from, to);
    this.seal(0);
  }

  /** Takes `begin` and `end` behind it, to be found under the hash of `begin`: so all texts that begin with it are found at one place. */
  setBehind(begin: TextBytes, end: string): void {
    this.setBytes(begin.bytes, 0, begin.length);
    const hash = this.#hash;
    this.append(end);
    this.seal(0);
    this.#hash = hash;
  }

  /** Is this the text in bytes `from` to `to` of `stored`? */
  isAt(stored: Uint8Array, from: number, to: number): boolean {
    if (to - from !== this.#length) return false;
    for (let i = 0; i < this.#length; i += 1) if (stored[from + i] !== this.bytes[i]) return false;
    return true;
  }

  /** Takes `text` behind what is there already, and returns its length in bytes. `seal` when all is there. */
  append(text: string): number {
    const start = this.#length;
    const { bytes } = this;
    for (let i = 0; i < text.length; i += 1) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) {
        const { written } = encoder.encodeInto(text, bytes.subarray(start));
        this.#length = start + written;
        return written;
      }
      bytes[start + i] = unit;
    }
    this.#length = start + text.length;
    return text.length;
  }

  clear(): void {
    this.#length = 0;
  }

  /** Takes bytes `from` to `to` of `source` behind what is there already. */
  appendBytes(source: Uint8Array, from: number, to: number): void {
    const { bytes } = this;
    const start = this.#length - from;
    for (let i = from; i < to; i += 1) bytes[start + i] = source[i]!;
    this.#length = start + to;
  }

  /** All is there: makes the hash. `salt` tells apart texts that were put together from different parts. */
  seal(salt: number): void {
    const length = this.#length;
    const words = this.#words;
    const { bytes } = this;
    // What did not fit would never be found again, and granted for ever.
    if (length > TEXT_BYTES_MAX) assert(false, `a text of ${length} bytes is too long to be looked up`);
    // Words are compared, and stored, as a whole.
    for (let i = length; (i & 3) !== 0; i += 1) bytes[i] = 0;
    let v0 = this.#seedLow;
    let v1 = this.#seedHigh;
    let v2 = 0x6c796765 ^ v0;
    let v3 = 0x74656462 ^ v1;
    const count = (length + 3) >>> 2;
    for (let i = 0; i <= count + 3; i += 1) {
      // After the text its length and the salt; then three rounds more.
      const word = i < count ? words[i]! : i === count ? (length << 16) ^ salt : 0;
      if (i === count + 1) v2 ^= 0xff;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    this.#hash = (v1 ^ v3) >>> 0;
  }

  /** How many units a block for this text has to have. */
  get units(): number {
    return unitsOfText(this.#length);
  }

  /** Is this the text that the block at `address` begins with? Their lengths are known to be equal. */
  equals(pool: BlockPool, address: number): boolean {
    const stored = pool.words(address);
    const at = wordOf(address);
    const words = this.#words;
    const count = (this.#length + 3) >>> 2;
    for (let i = 0; i < count; i += 1) if (stored[at + i] !== words[i]) return false;
    return true;
  }

  /** Writes the text into the block at `address`, from byte `from` on, where a word begins. */
  store(pool: BlockPool, address: number, from = 0): void {
    const stored = pool.words(address);
    const at = wordOf(address) + (from >>> 2);
    const words = this.#words;
    const count = (this.#length + 3) >>> 2;
    for (let i = 0; i < count; i += 1) stored[at + i] = words[i]!;
  }
}

export function unitsOfText(length: number): number {
  return Math.max(1, (length + 7) >>> 3);
}
