/**
 * How the bytes of a snapshot are cut into chunks, the digest of a state and of these chunks, and the error for bytes
 * that are no snapshot.
 */

import { ByteReader } from '../../bytes/byte-reader.ts';
import { ByteWriter } from '../../bytes/byte-writer.ts';

/** The largest chunk of a snapshot in bytes. No value is split between two chunks. */
export const CHUNK_BYTES_MAX = 32_768;

/**
 * The maximum size of the first chunk, and by how much each chunk may be larger than the one before. A chunk is written
 * or read without a break, and code that runs for the first time is many times slower than later.
 */
const FIRST_CHUNK_BYTES = 2_048;

/** A bound for the bytes written between two checks of `isFull`. */
const PART_BYTES_MAX = 1_024;

/** The bytes of a snapshot are damaged or are not a snapshot. */
export class InvalidSnapshotError extends Error {
  override readonly name = 'InvalidSnapshotError';
  readonly code = 'INVALID_SNAPSHOT';

  constructor(problem: string) {
    super(`not a limiter snapshot: ${problem}`);
  }
}

/** A writer that is full when it contains a chunk. */
export function snapshotWriter(): ByteWriter {
  return new ByteWriter(FIRST_CHUNK_BYTES - PART_BYTES_MAX);
}

/** The bytes written since the last chunk. Valid until more is written. */
export function takeChunk(out: ByteWriter): Uint8Array {
  const chunk = out.written;
  if (out.isFull && out.aimBytes + PART_BYTES_MAX < CHUNK_BYTES_MAX) out.aimBytes += FIRST_CHUNK_BYTES;
  out.clear();
  return chunk;
}

/** A reader that throws `InvalidSnapshotError`. */
export function snapshotReader(): ByteReader {
  return new ByteReader((problem) => new InvalidSnapshotError(problem));
}

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
