/**
 * Hides client data in LevelDB's log. After a crash, leveldb-log.ts searches every byte of that log for the beginning
 * of a batch. A client that chooses names of users could plant such a beginning in an entry and make a torn write pass
 * for damage. So entries and chunks are stored XORed with a random pad that nobody outside of this disk knows.
 */
import { assert } from '../raft/assert.ts';

/** The length of the pad in bytes. */
export const MASK_BYTES = 64;
const WORDS_FROM_BYTES = 256;

/** XORs data with a pad. */
export class Mask {
  readonly #words: Uint32Array;
  readonly #bytes: Uint8Array;

  /** @param pad `MASK_BYTES` random bytes, drawn once for each store */
  constructor(pad: Uint8Array) {
    assert(pad.length === MASK_BYTES, 'a mask must be {} bytes long, not {}', MASK_BYTES, pad.length);
    this.#bytes = new Uint8Array(pad);
    this.#words = new Uint32Array(this.#bytes.buffer);
  }

  /** Returns a masked copy of `data`, or the original of masked data: XOR is its own inverse. */
  apply(data: Uint8Array): Uint8Array {
    const masked = new Uint8Array(data);
    let done = 0;
    // Everything that is written passes here: XOR four bytes at a time if the data is long enough.
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
