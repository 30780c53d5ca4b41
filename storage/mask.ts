/**
 * Hides what clients chose in LevelDB's log. After a crash we look for the beginning of a batch at every byte of that log
 * (leveldb-log.ts); whoever picks the names of users could plant one in an entry, and make a torn write look like damage.
 * So entries and chunks are stored XORed with a pad that nobody knows outside of this disk: planted bytes become noise.
 */
import { assert } from '../raft/assert.ts';

export const MASK_BYTES = 64;
const WORDS_FROM_BYTES = 256;

export class Mask {
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;

  /** @param pad random, drawn once for each store */
  constructor(pad: Uint8Array) {
    assert(pad.length === MASK_BYTES, 'a mask is {} bytes long, not {}', MASK_BYTES, pad.length);
    this.#bytes = new Uint8Array(pad);
    this.#words = new Uint32Array(this.#bytes.buffer);
  }

  /** A masked copy of `data`, or the data of a masked one: twice is not at all. */
  apply(data: Uint8Array): Uint8Array {
    const masked = new Uint8Array(data);
    let done = 0;
    // This is done to everything that is written: four bytes at a time, if that is worth another view of them.
    if (masked.length >= WORDS_FROM_BYTES) {
      const words = new Uint32Array(masked.buffer, 0, masked.length >>> 2);
      for (let i = 0; i < words.length; i += 1) words[i] = (words[i] ?? 0) ^ (this.#words[i & 15] ?? 0);
      done = words.length * 4;
    }
    for (let i = done; i < masked.length; i += 1) {
      masked[i] = (masked[i] ?? 0) ^ (this.#bytes[i & 63] ?? 0);
    }
    return masked;
  }
}
