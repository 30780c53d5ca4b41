/**
 * Parses commands out of a byte stream that may be cut anywhere: arrays of bulk strings, and inline commands. It
 * stores the positions of the arguments and creates no strings.
 *
 * Sources: the Redis serialization protocol specification
 * (https://redis.io/docs/latest/develop/reference/protocol-spec/), and the errors of Redis for invalid input.
 */
import { CommandArguments } from './command-arguments.ts';
import { INLINE_BYTES_MAX, InlineRequest } from './inline-request.ts';

/** The most arguments of a command, including its name. */
export const ARGUMENTS_MAX = 64;
/** The longest argument in bytes. */
export const ARGUMENT_BYTES_MAX = 4_096;
/**
 * The longest count or length, with its sign and line end. Redis takes no leading zeros, so a longer one exceeds
 * every bound.
 */
const HEADER_BYTES_MAX = 32;
/** The smallest buffer for an unfinished command. */
const CARRY_BYTES_MIN = 1_024;
/** A larger buffer is not kept for the next unfinished command. */
const CARRY_BYTES_KEPT = 65_536;

const CR = 0x0d;
const LF = 0x0a;
const ASTERISK = 0x2a;
const DOLLAR = 0x24;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;

const EMPTY = Buffer.alloc(0);
/** Special results of `#header`. */
const UNFINISHED = Number.NEGATIVE_INFINITY;
const MALFORMED = Number.NaN;

/**
 * `command`: the command's arguments are in `arguments` until the next call. `unfinished`: more bytes are needed.
 * `broken`: the stream is invalid from here on, and `fault` says why.
 */
export type Parsed = 'command' | 'unfinished' | 'broken';

/** Parses the commands of one connection. */
export class RequestParser {
  readonly arguments = new CommandArguments(ARGUMENTS_MAX);
  /** The error text of Redis; empty while the stream is valid. */
  fault = '';
  readonly #inline = new InlineRequest();
  /** The bytes from `#at` to `#end` are still to be parsed. The current command begins at `#start`. */
  #bytes: Buffer = EMPTY;
  #start = 0;
  #at = 0;
  #end = 0;
  /** True if `#bytes` is the parser's own buffer. A buffer from a socket is never written to. */
  #isCarry = false;
  /** The number of arguments the command still lacks; 0 between two commands. */
  #missing = 0;
  /** The length of the current argument; -1 while it is not known. */
  #length = -1;

  /** The bytes kept for an unfinished command. */
  get heldBytes(): number {
    return this.#isCarry ? this.#bytes.length : 0;
  }

  /** True if no part of an unfinished command was read. */
  get isBetweenCommands(): boolean {
    return this.#start === this.#end;
  }

  /** Adds the next bytes. They must not change until `next` has returned `unfinished`. */
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

  /** Parses the next command. */
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
      // The comparison is written so that NaN is refused.
      if (!(count <= ARGUMENTS_MAX)) return this.#broken('invalid multibulk length');
      this.arguments.clear(this.#bytes);
      this.#missing = Math.max(0, count);
    }
  }

  /** Reads the arguments of an array, as far as they have arrived. */
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
      // Redis skips these two bytes without a check. Then a wrong length would turn a client's data into a command.
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

  /** Parses an inline command. Undefined if the line is empty. */
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
   * Parses the number between a type byte and CRLF in the form that Redis accepts: no plus sign, no leading zeros.
   * Moves behind it. Returns `MALFORMED` for anything else.
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

  /** Copies the bytes of an unfinished command, because the socket reuses its buffer. */
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

  /** Moves the bytes of the unfinished command to the parser's own buffer, with room for `more`. */
  #carry(more: number): void {
    const kept = this.#end - this.#start;
    // A large buffer is released when only a small part of it is still used.
    const isWasteful = more === 0 && this.#bytes.length > CARRY_BYTES_KEPT && 4 * kept < this.#bytes.length;
    if (this.#isCarry && this.#end + more <= this.#bytes.length && !isWasteful) return;
    const isLargeEnough =
      this.#isCarry && kept + more <= this.#bytes.length && this.#bytes.length <= CARRY_BYTES_KEPT;
    // Twice the needed size, so that bytes that arrive one by one are not copied each time.
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
