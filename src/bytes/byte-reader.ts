/**
 * Bytes on their way in: of log entries, frames and snapshots. It trusts nothing: whatever is not there, or out of its bounds, is
 * refused with the error of whoever reads.
 */

/** The longest integer. */
const INTEGER_BYTES_MAX = 8;
const NO_BYTES = new Uint8Array(0);

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * @example
 * const input = new ByteReader((problem) => new FrameError(problem), payload);
 * const count = input.integer('count', 0, 9);
 * const name = input.text('name', 1, 512);
 */
export class ByteReader {
  readonly #invalid: (problem: string) => Error;
  #bytes: Uint8Array;
  #at = 0;

  /** @param invalid what is thrown when the bytes are not what they should be */
  constructor(invalid: (problem: string) => Error, bytes: Uint8Array = NO_BYTES) {
    this.#invalid = invalid;
    this.#bytes = bytes;
  }

  /** Goes on with other bytes. */
  load(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#at = 0;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** What is being read: the bytes of texts are in there. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Where the next byte is. */
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

  /** From `min` to `max`; `name` is for the error. */
  integer(name: string, min = 0, max = Number.MAX_SAFE_INTEGER): number {
    const byte = this.#bytes[this.#at];
    // Most have one byte.
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
    throw this.#invalid(`${name} has no end`);
  }

  /** How many of something follow, of which each takes a byte at least. */
  count(name: string): number {
    const count = this.integer(name);
    if (count > this.#bytes.length - this.#at) throw this.#invalid(`${name}: ${count} are not there`);
    return count;
  }

  integers(name: string): number[] {
    return Array.from({ length: this.count(name) }, () => this.integer(name));
  }

  /** From `-max` to `max`. */
  signed(name: string, max: number): number {
    const isNegative = this.flag(`sign of ${name}`);
    const magnitude = this.integer(name, isNegative ? 1 : 0, max);
    return isNegative ? -magnitude : magnitude;
  }

  word(): number {
    return (this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24)) >>> 0;
  }

  oneOf<T extends string>(names: readonly T[], name: string): T {
    const value = names[this.integer(name)];
    if (value === undefined) throw this.#invalid(`${name} is not one of ${names.join(', ')}`);
    return value;
  }

  text(name: string, minBytes?: number, maxBytes?: number): string {
    const length = this.textBytes(name, minBytes, maxBytes);
    return decoder.decode(this.#bytes.subarray(this.#at - length, this.#at));
  }

  /** Goes past a text without making a string of it: it lies before `position`. Returns its length in bytes. */
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

  /** A copy: what is received lies in a buffer that serves for more. */
  byteString(name: string): Uint8Array {
    return new Uint8Array(this.byteView(name));
  }

  /** The bytes where they lie: good as long as what is read is. */
  byteView(name: string): Uint8Array {
    const length = this.#past(name);
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Goes past bytes that stand behind their number. */
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
