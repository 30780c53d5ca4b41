/**
 * Encodes answers into a growing buffer, so that many of them are sent in one write. All differences between the two
 * protocol versions are here.
 */
import type { Reply } from './reply.ts';

/** 2 until the client sends `HELLO 3`. */
export type RespVersion = 2 | 3;

const BYTES_MIN = 16_384;
/** A buffer that grew beyond this many bytes is not reused. */
const BYTES_KEPT = 1 << 20;
/** The most bytes of a safe integer: a sign and its digits. */
const INTEGER_BYTES_MAX = 17;

const CR = 0x0d;
const LF = 0x0a;
const MINUS = 0x2d;
const ZERO = 0x30;

const SIMPLE = '+'.charCodeAt(0);
const ERROR = '-'.charCodeAt(0);
const INTEGER = ':'.charCodeAt(0);
const BULK = '$'.charCodeAt(0);
const ARRAY = '*'.charCodeAt(0);
const MAP = '%'.charCodeAt(0);
const SET = '~'.charCodeAt(0);
const PUSH = '>'.charCodeAt(0);

/** Encodes answers. */
export class ReplyWriter {
  #bytes = Buffer.allocUnsafeSlow(BYTES_MIN);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The bytes since the last call, in a new buffer. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    if (this.#bytes.length > BYTES_KEPT) this.#bytes = Buffer.allocUnsafeSlow(BYTES_MIN);
    return taken;
  }

  /** Writes an array of five safe integers. They are separate parameters, so that no array is allocated. */
  fiveIntegers(a: number, b: number, c: number, d: number, e: number): void {
    this.#reserve(4 + 5 * (INTEGER_BYTES_MAX + 3));
    this.#header(ARRAY, 5);
    this.#header(INTEGER, a);
    this.#header(INTEGER, b);
    this.#header(INTEGER, c);
    this.#header(INTEGER, d);
    this.#header(INTEGER, e);
  }

  /**
   * Writes an error. @param text with its code; line ends are replaced by spaces, because they would end the answer
   */
  error(text: string): void {
    this.#line(ERROR, text);
  }

  /** Writes encoded answers as they are, `times` times. */
  raw(bytes: Buffer, times = 1): void {
    const total = bytes.length * times;
    this.#reserve(total);
    if (times === 1) bytes.copy(this.#bytes, this.#length);
    else this.#bytes.fill(bytes, this.#length, this.#length + total);
    this.#length += total;
  }

  /** Writes an answer. */
  reply(reply: Reply, version: RespVersion): void {
    if (typeof reply === 'number') {
      this.#sized(INTEGER, reply);
    } else if (typeof reply === 'string') {
      this.#bulk(reply);
    } else if (reply === null) {
      this.#ascii(version === 3 ? '_\r\n' : '$-1\r\n');
    } else if (Buffer.isBuffer(reply)) {
      this.#sized(BULK, reply.length);
      this.raw(reply);
      this.#reserve(2);
      this.#end();
    } else if (isList(reply)) {
      this.#sized(ARRAY, reply.length);
      for (const item of reply) this.reply(item, version);
    } else this.#tagged(reply, version);
  }

  #tagged(
    reply: Exclude<Reply, number | string | Buffer | null | readonly Reply[]>,
    version: RespVersion,
  ): void {
    switch (reply.kind) {
      case 'simple':
        this.#line(SIMPLE, reply.text);
        return;
      case 'error':
        this.error(reply.text);
        return;
      case 'map':
        if (version === 3) this.#sized(MAP, reply.entries.length);
        else this.#sized(ARRAY, 2 * reply.entries.length);
        for (const [key, value] of reply.entries) {
          this.#bulk(key);
          this.reply(value, version);
        }
        return;
      case 'set':
        this.#sized(version === 3 ? SET : ARRAY, reply.items.length);
        for (const item of reply.items) this.reply(item, version);
        return;
      case 'push':
        this.#sized(version === 3 ? PUSH : ARRAY, reply.items.length);
        for (const item of reply.items) this.reply(item, version);
        return;
      case 'several':
        for (const each of reply.replies) this.reply(each, version);
        return;
      case 'header':
        this.#sized(ARRAY, reply.count);
    }
  }

  #bulk(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#sized(BULK, bytes);
    this.#reserve(bytes + 2);
    this.#length += this.#bytes.write(text, this.#length);
    this.#end();
  }

  #line(type: number, text: string): void {
    const line = text.replaceAll(/[\r\n]+/g, ' ');
    this.#reserve(3 * line.length + 3);
    this.#bytes[this.#length] = type;
    this.#length += 1;
    this.#length += this.#bytes.write(line, this.#length);
    this.#end();
  }

  #ascii(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#bytes.write(text, this.#length, 'latin1');
  }

  #sized(type: number, value: number): void {
    this.#reserve(INTEGER_BYTES_MAX + 3);
    this.#header(type, value);
  }

  /** Writes a type byte, a number and a line end. The space must be reserved already. */
  #header(type: number, value: number): void {
    const bytes = this.#bytes;
    let at = this.#length;
    bytes[at] = type;
    at += 1;
    let rest = value;
    if (value < 0) {
      bytes[at] = MINUS;
      at += 1;
      rest = -value;
    }
    let digits = 1;
    for (let power = 10; power <= rest; power *= 10) digits += 1;
    for (let i = digits - 1; i >= 0; i -= 1) {
      const quotient = Math.floor(rest / 10);
      bytes[at + i] = ZERO + (rest - 10 * quotient);
      rest = quotient;
    }
    this.#length = at + digits;
    this.#end();
  }

  #end(): void {
    this.#bytes[this.#length] = CR;
    this.#bytes[this.#length + 1] = LF;
    this.#length += 2;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** `Array.isArray` alone would lose the `readonly`. */
function isList(reply: Reply): reply is readonly Reply[] {
  return Array.isArray(reply);
}
