/** The digest of a state and of the chunks of its snapshot. */

/** A 64-bit digest in two words. It detects accidental damage and diverged replicas; it does not stop an attacker. */
export class Digest {
  #a = 0x2545f491;
  #b = 0x9e3779b9 | 0;

  /** Adds `bytes`. The boundaries between calls are part of what is digested. */
  update(bytes: Uint8Array): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const words = bytes.length & ~3;
    let a = this.#a ^ bytes.length;
    let b = this.#b;
    for (let i = 0; i < words; i += 4) {
      const word = view.getInt32(i, true);
      a = Math.imul(a ^ word, 0x85ebca6b);
      a = (a << 13) | (a >>> 19);
      b = Math.imul(b + word, 0xc2b2ae35);
      b = (b << 17) | (b >>> 15);
      b ^= a;
    }
    for (let i = words; i < bytes.length; i += 1) {
      a = Math.imul(a ^ view.getUint8(i), 0x85ebca6b);
      a = (a << 13) | (a >>> 19);
      b = Math.imul(b ^ a, 0xc2b2ae35);
    }
    this.#a = a | 0;
    this.#b = b | 0;
  }

  /** The two words, each 0 to 2^32-1. */
  words(): [number, number] {
    return [avalanche(this.#a ^ this.#b), avalanche(Math.imul(this.#b, 0x27d4eb2f) + this.#a)];
  }

  /** 16 hexadecimal digits. */
  toString(): string {
    const [a, b] = this.words();
    return a.toString(16).padStart(8, '0') + b.toString(16).padStart(8, '0');
  }
}

function avalanche(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
