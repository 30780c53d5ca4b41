/** Bytes of a log entry on their way out. Knows no command. */

import { isBoundedText } from '../../api/bounded.ts';
import { assert } from '../assert.ts';

const encoder = new TextEncoder();
const FIRST_BYTES = 1_024;

/** Bytes that grow with what is written. */
export class Bytes {
  #bytes = new Uint8Array(FIRST_BYTES);
  length = 0;

  /** Makes room for `count` more. */
  reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + count));
    larger.set(this.written);
    this.#bytes = larger;
  }

  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  byte(value: number): void {
    this.#bytes[this.length] = value;
    this.length += 1;
  }

  integer(value: number): void {
    let rest = value;
    for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) this.byte((rest % 128) | 0x80);
    for (; rest >= 0x80; rest >>>= 7) this.byte((rest & 0x7f) | 0x80);
    this.byte(rest);
  }

  /** Behind its length, where there is room for `maxBytes` and for that. @param text of 0 to `maxBytes` bytes in UTF-8 */
  text(text: string, maxBytes: number): void {
    const { length } = text;
    assert(length <= maxBytes, 'a text of {} units has no more than {} bytes', length, maxBytes);
    const bytes = this.#bytes;
    const start = this.length + (length < 0x80 ? 1 : 2);
    for (let i = 0; i < length; i += 1) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80) {
        this.#wideText(text, maxBytes);
        return;
      }
      bytes[start + i] = unit;
    }
    this.integer(length);
    this.length += length;
  }

  #wideText(text: string, maxBytes: number): void {
    assert(isBoundedText(text, maxBytes), 'only well-formed texts enter the log');
    const utf8 = encoder.encode(text);
    this.integer(utf8.length);
    this.#bytes.set(utf8, this.length);
    this.length += utf8.length;
  }
}
