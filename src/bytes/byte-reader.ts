/**
 * Reads integers, texts and byte strings from log entries, frames and snapshots. It trusts nothing: missing bytes and
 * values out of bounds are refused with an error of the caller's choice.
 */

/** The longest encoding of an integer. */
const INTEGER_BYTES_MAX = 8;
const NO_BYTES = new Uint8Array(0);

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads bytes from beginning to end. Every method throws the error that `invalid` makes if the bytes are malformed. The
 * argument `name` of the methods names the field in that error.
 *
 * @example
 * const input = new ByteReader((problem) => new FrameError(problem), payload);
 * const count = input.integer('count', 0, 9);
 * const name = input.text('name', 1, 512);
 */
export class ByteReader {
  readonly #invalid: (problem: string) => Error;
  #bytes: Uint8Array;
  #at = 0;

  /** @param invalid makes the error to throw for malformed bytes */
  constructor(invalid: (problem: string) => Error, bytes: Uint8Array = NO_BYTES) {
    this.#invalid = invalid;
    this.#bytes = bytes;
  }

  /** Starts again with other bytes. */
  load(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#at = 0;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** All the bytes that are being read. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** The offset of the next byte. */
  get position(): number {
    return this.#at;
  }

  byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw this.#invalid('it ends too early');
    this.#at += 1;
    return byte;
  }

  flag(name: string): boolean {
    const byte = this.byte();
    if (byte > 1) throw this.#invalid(`${name} is neither 0 nor 1`);
    return byte === 1;
  }

  /** An integer from `min` to `max` in 1 to 8 bytes, 7 bits each, lowest first. */
  integer(name: string, min = 0, max = Number.MAX_SAFE_INTEGER): number {
    const byte = this.#bytes[this.#at];
    // Most integers have one byte.
    if (byte !== undefined && byte < 0x80 && byte >= min && byte <= max) {
      this.#at += 1;
      return byte;
    }
    return this.#longInteger(name, min, max);
  }

  #longInteger(name: string, min: number, max: number): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < INTEGER_BYTES_MAX; i += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw this.#invalid(`${name} ends too early`);
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value < min || value > max) throw this.#invalid(`${name} is ${value}, not from ${min} to ${max}`);
        return value;
      }
      scale *= 128;
    }
    throw this.#invalid(`${name} has more than ${INTEGER_BYTES_MAX} bytes`);
  }

  /** The number of following items, each of which takes at least one byte. */
  count(name: string): number {
    const count = this.integer(name);
    if (count > this.#bytes.length - this.#at)
      throw this.#invalid(`${name}: ${count} do not fit into what is left`);
    return count;
  }

  /** A count, then that many integers. */
  integers(name: string): number[] {
    return Array.from({ length: this.count(name) }, () => this.integer(name));
  }

  /** An integer from `-max` to `max` in 2 to 9 bytes. */
  signed(name: string, max: number): number {
    const isNegative = this.flag(`sign of ${name}`);
    const magnitude = this.integer(name, isNegative ? 1 : 0, max);
    return isNegative ? -magnitude : magnitude;
  }

  /** An integer from 0 to 2^32-1 in 4 bytes, little-endian. */
  word(): number {
    return (this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24)) >>> 0;
  }

  /** One of `names`, encoded as its position. */
  oneOf<T extends string>(names: readonly T[], name: string): T {
    const value = names[this.integer(name)];
    if (value === undefined) throw this.#invalid(`${name} is not one of ${names.join(', ')}`);
    return value;
  }

  /** A length-prefixed UTF-8 text of `minBytes` to `maxBytes` bytes. */
  text(name: string, minBytes?: number, maxBytes?: number): string {
    const length = this.textBytes(name, minBytes, maxBytes);
    return decoder.decode(this.#bytes.subarray(this.#at - length, this.#at));
  }

  /**
   * Skips a text without decoding it, but checks that it is UTF-8. Its bytes end at `position`. Returns its length in
   * bytes.
   */
  textBytes(name: string, minBytes?: number, maxBytes?: number): number {
    const length = this.#past(name, minBytes, maxBytes);
    const end = this.#at;
    const bytes = this.#bytes;
    for (let i = end - length; i < end; i += 1) {
      if (bytes[i]! < 0x80) continue;
      if (!isUtf8(bytes.subarray(end - length, end))) throw this.#invalid(`${name} is not UTF-8`);
      break;
    }
    return length;
  }

  /** A length-prefixed byte string, as a copy: receive buffers are reused. */
  byteString(name: string): Uint8Array {
    return new Uint8Array(this.byteView(name));
  }

  /** A length-prefixed byte string, as a view of the bytes being read. */
  byteView(name: string): Uint8Array {
    const length = this.#past(name);
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Skips a length-prefixed byte string and returns its length. */
  #past(name: string, min?: number, max?: number): number {
    const length = this.integer(name, min, max);
    if (length > this.#bytes.length - this.#at) throw this.#invalid(`${name} ends too early`);
    this.#at += length;
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
