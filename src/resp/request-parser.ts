/**
 * Reads commands out of a stream of bytes that may be cut anywhere: arrays of bulk strings, and inline commands. It keeps where
 * the arguments lie, and makes no strings; what a command means is not its business.
 *
 * Sources: the Redis serialization protocol specification, and what Redis answers to bytes that are none of it.
 */
import { CommandArguments } from './command-arguments.ts';
import { INLINE_BYTES_MAX, InlineRequest } from './inline-request.ts';

/** The most arguments of a command, its name included. */
export const ARGUMENTS_MAX = 64;
/** The longest argument. */
export const ARGUMENT_BYTES_MAX = 4_096;
/** A count or a length with its sign and its end; Redis takes no leading zeros, so a longer one is beyond any bound. */
const HEADER_BYTES_MAX = 32;
/** Room for an unfinished command of the usual length. */
const CARRY_BYTES_MIN = 1_024;
/** A larger one is not kept for the next unfinished command. */
const CARRY_BYTES_KEPT = 65_536;

const CR = 0x0d;
const LF = 0x0a;
const ASTERISK = 0x2a;
const DOLLAR = 0x24;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

const EMPTY = Buffer.alloc(0);
/** What `#header` gives instead of a number. */
const UNFINISHED = Number.NEGATIVE_INFINITY;
const MALFORMED = Number.NaN;

/**
 * `command`: its arguments are in `arguments` until the parser is used again. `unfinished`: more bytes are needed. `broken`: the
 * rest of the stream has no meaning, and `fault` says why.
 */
export type Parsed = 'command' | 'unfinished' | 'broken';

export class RequestParser {
  readonly arguments = new CommandArguments(ARGUMENTS_MAX);
  /** What Redis says of such bytes; empty while nothing is wrong. */
  fault = '';
  readonly #inline = new InlineRequest();
  /** Bytes from `#at` to `#end` are to be parsed; those of the command that is being read begin at `#start`. */
  #bytes: Buffer = EMPTY;
  #start = 0;
  #at = 0;
  #end = 0;
  /** Whether `#bytes` belong to the parser: what a socket gave is not written to. */
  #isCarry = false;
  /** Arguments that the command still lacks; 0 between two commands. */
  #missing = 0;
  /** Of the argument that is being read; -1 while its length is not known. */
  #length = -1;

  /** Bytes kept for a command that is not finished. */
  get heldBytes(): number {
    return this.#isCarry ? this.#bytes.length : 0;
  }

  /** Nothing was read of a command that is not finished. */
  get isBetweenCommands(): boolean {
    return this.#start === this.#end;
  }

  /** Adds what came next. The bytes must not change until `next` found them unfinished. */
  push(chunk: Buffer): void {
    if (this.#start === this.#end) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#at = 0;
      this.#end = chunk.length;
      this.#isCarry = false;
      return;
    }
    this.#carry(chunk.length);
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  next(): Parsed {
    if (this.fault !== '') return 'broken';
    for (;;) {
      if (this.#missing > 0) return this.#bulks();
      this.#start = this.#at;
      if (this.#at === this.#end) return this.#unfinished();
      if (this.#bytes[this.#at] !== ASTERISK) {
        const parsed = this.#inlineCommand();
        if (parsed !== undefined) return parsed;
        continue;
      }
      const count = this.#header('too big mbulk count string');
      if (count === UNFINISHED) return this.#unfinished();
      if (this.fault !== '') return 'broken';
      // Written so that a count that is none is refused.
      if (!(count <= ARGUMENTS_MAX)) return this.#broken('invalid multibulk length');
      this.arguments.clear(this.#bytes);
      this.#missing = Math.max(0, count);
    }
  }

  /** The arguments of an array, as far as they are there. */
  #bulks(): Parsed {
    while (this.#missing > 0) {
      if (this.#length < 0) {
        if (this.#at === this.#end) return this.#unfinished();
        const first = this.#bytes[this.#at];
        if (first !== DOLLAR) return this.#broken(`expected '$', got '${printable(first ?? 0)}'`);
        const length = this.#header('too big bulk count string');
        if (length === UNFINISHED) return this.#unfinished();
        if (this.fault !== '') return 'broken';
        if (!(length >= 0 && length <= ARGUMENT_BYTES_MAX)) return this.#broken('invalid bulk length');
        this.#length = length;
      }
      const end = this.#at + this.#length;
      if (end + 2 > this.#end) return this.#unfinished();
      // Redis skips these two unseen. A length that does not fit would make data of a client a command.
      if (this.#bytes[end] !== CR || this.#bytes[end + 1] !== LF) {
        return this.#broken('expected CRLF after a bulk string');
      }
      this.arguments.add(this.#at, end);
      this.#at = end + 2;
      this.#length = -1;
      this.#missing -= 1;
    }
    return 'command';
  }

  /** Undefined where the line is empty. */
  #inlineCommand(): Parsed | undefined {
    const limit = Math.min(this.#end, this.#start + INLINE_BYTES_MAX + 1);
    const newline = this.#bytes.subarray(0, limit).indexOf(LF, this.#start);
    if (newline < 0) {
      if (this.#end - this.#start > INLINE_BYTES_MAX) return this.#broken('too big inline request');
      return this.#unfinished();
    }
    const isCrLf = newline > this.#start && this.#bytes[newline - 1] === CR;
    const line = this.#bytes.subarray(this.#start, isCrLf ? newline - 1 : newline);
    this.#at = newline + 1;
    const split = this.#inline.split(line, this.arguments);
    if (split !== 'split') return this.#broken(split);
    return this.arguments.count > 0 ? 'command' : undefined;
  }

  /**
   * The number between a type byte and CRLF, as Redis takes integers: no plus, no leading zeros, nothing else. Moves on behind
   * it. What is no such number is `MALFORMED`.
   */
  #header(tooLong: string): number {
    const bytes = this.#bytes;
    const first = this.#at + 1;
    let at = first;
    const isNegative = bytes[at] === MINUS && at < this.#end;
    if (isNegative) at += 1;
    let value = 0;
    let isNumber = true;
    for (; at < this.#end; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === CR) break;
      if (at - first > HEADER_BYTES_MAX) {
        this.#broken(tooLong);
        return MALFORMED;
      }
      if (byte < ZERO || byte > NINE) isNumber = false;
      value = value * 10 + (byte - ZERO);
    }
    if (at + 1 >= this.#end) return UNFINISHED;
    const digits = at - first - (isNegative ? 1 : 0);
    const leading = bytes[isNegative ? first + 1 : first];
    if (digits === 0 || (leading === ZERO && (digits > 1 || isNegative))) isNumber = false;
    if (bytes[at + 1] !== LF) isNumber = false;
    this.#at = at + 2;
    if (!isNumber) return MALFORMED;
    return isNegative ? -value : value;
  }

  /** What was read of the command is kept where the socket does not write. */
  #unfinished(): Parsed {
    if (this.#start < this.#end) this.#carry(0);
    else this.#forget();
    return 'unfinished';
  }

  #forget(): void {
    this.#bytes = EMPTY;
    this.#start = 0;
    this.#at = 0;
    this.#end = 0;
    this.#isCarry = false;
  }

  #broken(fault: string): Parsed {
    this.fault = `Protocol error: ${fault}`;
    this.#forget();
    return 'broken';
  }

  /** Makes the bytes of the unfinished command the parser's own, with room for `more`. */
  #carry(more: number): void {
    const kept = this.#end - this.#start;
    // Room that was made for a long read is given back when little of it is left.
    const isWasteful = more === 0 && this.#bytes.length > CARRY_BYTES_KEPT && 4 * kept < this.#bytes.length;
    if (this.#isCarry && this.#end + more <= this.#bytes.length && !isWasteful) return;
    const isLargeEnough =
      this.#isCarry && kept + more <= this.#bytes.length && this.#bytes.length <= CARRY_BYTES_KEPT;
    // Twice what is needed: bytes that come one by one must not be copied one by one.
    const target = isLargeEnough
      ? this.#bytes
      : Buffer.allocUnsafeSlow(Math.max(CARRY_BYTES_MIN, 2 * (kept + more)));
    this.#bytes.copy(target, 0, this.#start, this.#end);
    this.arguments.moved(target, this.#start);
    this.#at -= this.#start;
    this.#end = kept;
    this.#start = 0;
    this.#bytes = target;
    this.#isCarry = true;
  }
}

function printable(byte: number): string {
  return byte >= 0x20 && byte <= 0x7e ? String.fromCharCode(byte) : '?';
}
