/**
 * Writes integers, texts and byte strings into log entries, frames and snapshots. The buffer grows as needed. The
 * caller decides what the bytes mean.
 */
import { isBoundedText } from '../api/bounded.ts';

const FIRST_BYTES = 1_024;
/** The longest encoding of an integer. */
const INTEGER_BYTES_MAX = 8;
/** Shorter byte strings are copied faster byte by byte. */
const LONG_BYTES = 64;

const encoder = new TextEncoder();

/**
 * A growing buffer. `ByteReader` reads what it writes.
 *
 * @example
 * const out = new ByteWriter();
 * out.integer(300);
 * out.text('ada', 512);
 * const bytes = out.take();
 */
export class ByteWriter {
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;
  /** From this length on, `isFull` is true. */
  aimBytes: number;

  constructor(aimBytes = Number.POSITIVE_INFINITY) {
    this.aimBytes = aimBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether it contains at least `aimBytes` bytes. */
  get isFull(): boolean {
    return this.#length >= this.aimBytes;
  }

  /** A view of the written bytes, valid until more is written. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Drops everything after the first `length` bytes. */
  truncate(length: number): void {
    if (length < this.#length) this.#length = length;
  }

  clear(): void {
    this.#length = 0;
  }

  /** Copies the written bytes to `target` at offset `at`. Returns the offset after them. */
  copyTo(target: Uint8Array, at: number): number {
    const length = this.#length;
    if (length >= LONG_BYTES) target.set(this.written, at);
    else for (let i = 0; i < length; i += 1) target[at + i] = this.#bytes[i]!;
    return at + length;
  }

  /** Returns a copy of the written bytes and clears the buffer. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    return taken;
  }

  /** An integer from 0 to 255 in one byte. */
  byte(value: number): void {
    if (this.#length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#length++] = value;
  }

  flag(value: boolean): void {
    this.byte(value ? 1 : 0);
  }

  /** A safe integer >= 0 in 1 to 8 bytes: 7 bits each, lowest first. */
  integer(value: number): void {
    if (this.#length + INTEGER_BYTES_MAX > this.#bytes.length) this.#grow(INTEGER_BYTES_MAX);
    const bytes = this.#bytes;
    let rest = value;
    for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) bytes[this.#length++] = (rest % 128) | 0x80;
    for (; rest >= 0x80; rest >>>= 7) bytes[this.#length++] = (rest & 0x7f) | 0x80;
    bytes[this.#length++] = rest;
  }

  /** A count, then each integer. */
  integers(values: readonly number[]): void {
    this.integer(values.length);
    for (const value of values) this.integer(value);
  }

  /** A safe integer in 2 to 9 bytes: the sign, then the magnitude. */
  signed(value: number): void {
    this.flag(value < 0);
    this.integer(Math.abs(value));
  }

  /** An integer from 0 to 2^32-1 in 4 bytes, little-endian. */
  word(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.byte((value >>> shift) & 0xff);
  }

  /**
   * A text as UTF-8 after its length in bytes.
   *
   * @throws RangeError if it has more than `maxBytes` bytes or is not well-formed UTF-16
   */
  text(value: string, maxBytes = Number.MAX_SAFE_INTEGER): void {
    const { length } = value;
    if (length > maxBytes) throw new RangeError(`a text of ${length} units has more than ${maxBytes} bytes`);
    if (this.#length + INTEGER_BYTES_MAX + length > this.#bytes.length)
      this.#grow(INTEGER_BYTES_MAX + length);
    const bytes = this.#bytes;
    const before = this.#length;
    this.integer(length);
    const start = this.#length;
    for (let i = 0; i < length; i += 1) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) {
        this.#length = before;
        this.#wideText(value, maxBytes);
        return;
      }
      bytes[start + i] = unit;
    }
    this.#length += length;
  }

  #wideText(value: string, maxBytes: number): void {
    if (!isBoundedText(value, maxBytes))
      throw new RangeError('a text must be well-formed and within its bounds');
    this.byteString(encoder.encode(value));
  }

  /** `count` bytes of `source` from offset `from`, after their number. */
  byteString(source: Uint8Array, from = 0, count = source.length - from): void {
    this.integer(count);
    if (this.#length + count > this.#bytes.length) this.#grow(count);
    if (count < LONG_BYTES) {
      const bytes = this.#bytes;
      const at = this.#length;
      for (let i = 0; i < count; i += 1) bytes[at + i] = source[from + i]!;
    } else this.#bytes.set(source.subarray(from, from + count), this.#length);
    this.#length += count;
  }

  #grow(more: number): void {
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + more));
    larger.set(this.written);
    this.#bytes = larger;
  }
}
