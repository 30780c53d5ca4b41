/**
 * A text on its way into or out of the state's memory: its UTF-8 bytes, and a hash to find it by. Texts are not checked
 * here; they are known to survive the conversion.
 */

import { assert } from '../assert.ts';
import { type BlockPool, wordOf } from './block-pool.ts';

/** Long enough for a key with a request id, or with the id of a stated rule. */
const TEXT_BYTES_MAX = 2_048;

const encoder = new TextEncoder();

/**
 * Holds one text at a time, for lookups. Users choose their keys. If they could predict the hashes, they could put all
 * keys into one bucket and make a lookup take seconds. So the hash is HalfSipHash-1-3 with a seed that the process
 * draws at random. Nothing that is replicated depends on the hash.
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

  /** Holds `text` from now on. */
  set(text: string): void {
    this.#length = 0;
    this.append(text);
    this.seal(0);
  }

  /** Holds bytes `from` to `to` of `source` from now on. */
  setBytes(source: Uint8Array, from: number, to: number): void {
    this.#length = 0;
    this.appendBytes(source, from, to);
    this.seal(0);
  }

  /**
   * Holds `begin` followed by `end`, but with the hash of `begin`. So all texts with the same beginning are found under
   * one hash.
   */
  setBehind(begin: TextBytes, end: string): void {
    this.setBytes(begin.bytes, 0, begin.length);
    const hash = this.#hash;
    this.append(end);
    this.seal(0);
    this.#hash = hash;
  }

  /** Do bytes `from` to `to` of `stored` equal this text? */
  isAt(stored: Uint8Array, from: number, to: number): boolean {
    if (to - from !== this.#length) return false;
    for (let i = 0; i < this.#length; i += 1) if (stored[from + i] !== this.bytes[i]) return false;
    return true;
  }

  /** Appends `text` and returns its length in bytes. Call `seal` when the text is complete. */
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

  /** Appends bytes `from` to `to` of `source`. Call `seal` when the text is complete. */
  appendBytes(source: Uint8Array, from: number, to: number): void {
    const { bytes } = this;
    const start = this.#length - from;
    for (let i = from; i < to; i += 1) bytes[start + i] = source[i]!;
    this.#length = start + to;
  }

  /** Computes the hash of the complete text. `salt` distinguishes texts that were put together from different parts. */
  seal(salt: number): void {
    const length = this.#length;
    const words = this.#words;
    const { bytes } = this;
    // A text that was cut off would never be found again, and would be granted forever.
    if (length > TEXT_BYTES_MAX) assert(false, `a text of ${length} bytes is too long to be looked up`);
    // Zero padding, because texts are compared and stored in whole words.
    for (let i = length; (i & 3) !== 0; i += 1) bytes[i] = 0;
    let v0 = this.#seedLow;
    let v1 = this.#seedHigh;
    let v2 = 0x6c796765 ^ v0;
    let v3 = 0x74656462 ^ v1;
    const count = (length + 3) >>> 2;
    for (let i = 0; i <= count + 3; i += 1) {
      // After the text comes one word of length and salt, then three more rounds.
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

  /** The size of a block for this text, in units. */
  get units(): number {
    return unitsOfText(this.#length);
  }

  /** Does the block at `address` begin with this text? The lengths are known to be equal. */
  equals(pool: BlockPool, address: number): boolean {
    const stored = pool.words(address);
    const at = wordOf(address);
    const words = this.#words;
    const count = (this.#length + 3) >>> 2;
    for (let i = 0; i < count; i += 1) if (stored[at + i] !== words[i]) return false;
    return true;
  }

  /** Writes the text into the block at `address` from byte `from` on, a multiple of 4. */
  store(pool: BlockPool, address: number, from = 0): void {
    const stored = pool.words(address);
    const at = wordOf(address) + (from >>> 2);
    const words = this.#words;
    const count = (this.#length + 3) >>> 2;
    for (let i = 0; i < count; i += 1) stored[at + i] = words[i]!;
  }
}

/** The size in units of a block for `length` bytes. */
export function unitsOfText(length: number): number {
  return Math.max(1, (length + 7) >>> 3);
}
