/**
 * Bytes of a snapshot: a writer that cuts them into chunks and digests them, and the reader that trusts none, of
 * log entries too. Knows no limiter state.
 */

/** The largest chunk of a snapshot. No value is split between two chunks. */
export const CHUNK_BYTES_MAX = 32_768;

/**
 * The first chunk is this large at most, and each may be larger than the one before by as much: a chunk is made, and
 * read, in one go, and code that never ran before is many times slower than it will be.
 */
const FIRST_CHUNK_BYTES = 2_048;

/** Whatever is written between two looks at `isFull` takes less than this. */
const PART_BYTES_MAX = 1_024;

/** Snapshot bytes are damaged or not a snapshot. */
export class InvalidSnapshotError extends Error {
  override readonly name = 'InvalidSnapshotError';
  readonly code = 'INVALID_SNAPSHOT';

  constructor(problem: string) {
    super(`not a limiter snapshot: ${problem}`);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A 64-bit digest in two words. It finds accidents and diverged replicas; it does not stop an attacker. */
export class Digest {
  #a = 0x2545f491;
  #b = 0x9e3779b9 | 0;

  /** Takes in `bytes`; where a stream is cut into calls is part of what is digested. */
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

export class ByteWriter {
  #bytes = new Uint8Array(FIRST_CHUNK_BYTES);
  #position = 0;

  /** It is time to `take` what is there. To be asked before each part of less than `PART_BYTES_MAX`. */
  get isFull(): boolean {
    return this.#position + PART_BYTES_MAX > this.#bytes.length;
  }

  /** What was written since this was called last; valid until more is written. */
  take(): Uint8Array {
    const chunk = this.#bytes.subarray(0, this.#position);
    const { length } = this.#bytes;
    if (length < CHUNK_BYTES_MAX && this.isFull) this.#bytes = new Uint8Array(length + FIRST_CHUNK_BYTES);
    this.#position = 0;
    return chunk;
  }

  byte(value: number): void {
    this.#bytes[this.#position] = value;
    this.#position += 1;
  }

  /** A safe integer >= 0 in 1 to 8 bytes, 7 bits each. */
  integer(value: number): void {
    let rest = value;
    for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) this.byte((rest % 128) | 0x80);
    for (; rest >= 0x80; rest >>>= 7) this.byte((rest & 0x7f) | 0x80);
    this.byte(rest);
  }

  /** A safe integer in 2 to 9 bytes. */
  signed(value: number): void {
    this.byte(value < 0 ? 1 : 0);
    this.integer(Math.abs(value));
  }

  word(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.byte((value >>> shift) & 0xff);
  }

  /** Well-formed text of a few hundred bytes at most. */
  text(value: string): void {
    const utf8 = encoder.encode(value);
    this.textBytes(utf8, 0, utf8.length);
  }

  /** The same, of bytes that are there already. */
  textBytes(source: Uint8Array, from: number, length: number): void {
    this.integer(length);
    for (let i = 0; i < length; i += 1) this.#bytes[this.#position + i] = source[from + i]!;
    this.#position += length;
  }
}

const NO_BYTES = new Uint8Array(0);

export class ByteReader {
  #chunk: Uint8Array = NO_BYTES;
  #position = 0;
  readonly #invalid: (problem: string) => Error;

  /** @param invalid what is thrown when the bytes are not what they should be */
  constructor(invalid = (problem: string): Error => new InvalidSnapshotError(problem)) {
    this.#invalid = invalid;
  }

  /** Goes on with another chunk. The one before must have been read to its end. */
  load(chunk: Uint8Array): void {
    this.#chunk = chunk;
    this.#position = 0;
  }

  get atEnd(): boolean {
    return this.#position >= this.#chunk.length;
  }

  /** The chunk that is being read: the bytes of texts are in there. */
  get chunk(): Uint8Array {
    return this.#chunk;
  }

  /** Bytes of the chunk that were read. */
  get position(): number {
    return this.#position;
  }

  byte(): number {
    if (this.#position >= this.#chunk.length) throw this.#invalid('it ends too early');
    const byte = this.#chunk[this.#position]!;
    this.#position += 1;
    return byte;
  }

  /** Reads an integer from `min` to `max`; `name` is for the error. */
  integer(name: string, min: number, max: number): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i += 1) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value < min || value > max) {
          throw this.#invalid(`${name} is ${value}, not from ${min} to ${max}`);
        }
        return value;
      }
      scale *= 128;
    }
    throw this.#invalid(`${name} has no end`);
  }

  flag(name: string): boolean {
    const byte = this.byte();
    if (byte > 1) throw this.#invalid(`${name} is neither 0 nor 1`);
    return byte === 1;
  }

  /** Reads an integer of a magnitude up to `max`. */
  signed(name: string, max: number): number {
    const isNegative = this.flag(`sign of ${name}`);
    const magnitude = this.integer(name, isNegative ? 1 : 0, max);
    return isNegative ? -magnitude : magnitude;
  }

  word(): number {
    return (this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24)) >>> 0;
  }

  text(name: string, maxBytes: number, minBytes = 1): string {
    const length = this.textBytes(name, minBytes, maxBytes);
    return decoder.decode(this.#chunk.subarray(this.#position - length, this.#position));
  }

  /** Reads text without making a string of it: it lies in `chunk`, before `position`. Returns its length in bytes. */
  textBytes(name: string, minBytes: number, maxBytes: number): number {
    const length = this.integer(`length of ${name}`, minBytes, maxBytes);
    const start = this.#position;
    const end = start + length;
    if (end > this.#chunk.length) throw this.#invalid(`${name} ends too early`);
    this.#position = end;
    for (let i = start; i < end; i += 1) {
      if (this.#chunk[i]! < 0x80) continue;
      if (!isUtf8(this.#chunk.subarray(start, end))) throw this.#invalid(`${name} is not UTF-8`);
      break;
    }
    return length;
  }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    decoder.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function avalanche(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
