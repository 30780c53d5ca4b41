/**
 * Bytes of a snapshot: a writer that cuts them into chunks and digests them, and the reader that trusts none.
 * Knows no limiter state.
 */

/** The largest chunk in bytes. No value is split between two chunks. */
export const CHUNK_BYTES_MAX = 262_144;

/** Snapshot bytes are damaged or not a snapshot. */
export class InvalidSnapshotError extends Error {
  override readonly name = 'InvalidSnapshotError';
  readonly code = 'invalid_snapshot';

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
    for (let i = words; i < bytes.length; i++) {
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
  readonly digest = new Digest();
  readonly #sink: ((chunk: Uint8Array) => void) | undefined;
  /** Grows: most states are far smaller than a chunk, and clearing one costs more than writing them. */
  #bytes = new Uint8Array(4_096);
  #view = new DataView(this.#bytes.buffer);
  #position = 0;

  /** Without a sink the bytes are only digested. */
  constructor(sink?: (chunk: Uint8Array) => void) {
    this.#sink = sink;
  }

  byte(value: number): void {
    this.#need(1);
    this.#bytes[this.#position++] = value;
  }

  /** A safe integer >= 0 in 1 to 8 bytes, 7 bits each. */
  integer(value: number): void {
    this.#need(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#position++] = (rest % 128) | 0x80;
      rest = rest > 0x7fff_ffff ? Math.floor(rest / 128) : rest >>> 7;
    }
    this.#bytes[this.#position++] = rest;
  }

  word(value: number): void {
    this.#need(4);
    this.#view.setUint32(this.#position, value, true);
    this.#position += 4;
  }

  /** Well-formed text of less than a few kilobytes. */
  text(value: string): void {
    this.#need(value.length * 3 + 8);
    const start = this.#position;
    this.integer(value.length);
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) {
        const utf8 = encoder.encode(value);
        this.#position = start;
        this.integer(utf8.length);
        this.#bytes.set(utf8, this.#position);
        this.#position += utf8.length;
        return;
      }
      this.#bytes[this.#position++] = unit;
    }
  }

  /** Ends the current chunk, if it has anything in it. */
  cut(): void {
    if (this.#position === 0) return;
    const chunk = this.#bytes.subarray(0, this.#position);
    this.digest.update(chunk);
    this.#sink?.(chunk.slice());
    this.#position = 0;
  }

  #need(bytes: number): void {
    if (this.#position + bytes <= this.#bytes.length) return;
    if (this.#position + bytes > CHUNK_BYTES_MAX) this.cut();
    else this.#grow(this.#position + bytes);
  }

  #grow(bytesMin: number): void {
    let length = this.#bytes.length;
    while (length < bytesMin) length *= 2;
    const grown = new Uint8Array(Math.min(length, CHUNK_BYTES_MAX));
    grown.set(this.#bytes.subarray(0, this.#position));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

const NO_BYTES = new Uint8Array(0);

export class ByteReader {
  readonly #chunks: readonly Uint8Array[];
  #next = 0;
  /** The chunk being read; `#position` is below its length until all chunks are read. */
  #current: Uint8Array = NO_BYTES;
  #position = 0;

  /** Every chunk must hold something. */
  constructor(chunks: readonly Uint8Array[]) {
    this.#chunks = chunks;
    this.#turn();
  }

  get atEnd(): boolean {
    return this.#position >= this.#current.length;
  }

  byte(): number {
    if (this.atEnd) throw new InvalidSnapshotError('ends too early');
    const value = this.#current[this.#position++]!;
    if (this.#position === this.#current.length) this.#turn();
    return value;
  }

  /** Reads an integer from `min` to `max`; `name` is for the error. */
  integer(name: string, min: number, max: number): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value < min || value > max) {
          throw new InvalidSnapshotError(`${name} is ${value}, not from ${min} to ${max}`);
        }
        return value;
      }
      scale *= 128;
    }
    throw new InvalidSnapshotError(`${name} has no end`);
  }

  text(name: string, maxBytes: number): string {
    const length = this.integer(`length of ${name}`, 0, maxBytes);
    if (length === 0) return '';
    const end = this.#position + length;
    if (end > this.#current.length) throw new InvalidSnapshotError(`${name} ends too early`);
    const bytes = this.#current.subarray(this.#position, end);
    this.#position = end;
    if (end === this.#current.length) this.#turn();
    try {
      return decoder.decode(bytes);
    } catch {
      throw new InvalidSnapshotError(`${name} is not UTF-8`);
    }
  }

  #turn(): void {
    const chunk = this.#chunks[this.#next];
    if (chunk === undefined) return;
    this.#next++;
    this.#current = chunk;
    this.#position = 0;
  }
}

function avalanche(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
