/** Splits an inline command (a line of text) into arguments: at spaces, with the quotes and escapes of Redis. */
import type { CommandArguments } from './command-arguments.ts';

/** The longest line in bytes, without its line end. */
export const INLINE_BYTES_MAX = 4_096;

const SPACE = 0x20;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const BACKSLASH = 0x5c;
const LOWER_X = 0x78;
/** The characters that follow a backslash between double quotes. Any other character stands for itself. */
const ESCAPES: ReadonlyMap<number, number> = new Map(
  Object.entries({ n: '\n', r: '\r', t: '\t', b: '\b', a: '\u0007' }).map(([name, meaning]) => [
    name.charCodeAt(0),
    meaning.charCodeAt(0),
  ]),
);

/** `split`, or what is wrong with the line. */
export type InlineResult = 'split' | 'too big inline request' | 'unbalanced quotes in request';

/** Splits inline commands. */
export class InlineRequest {
  /** The arguments without their quotes. Never longer than the line. */
  readonly #unquoted = Buffer.alloc(INLINE_BYTES_MAX);
  #line: Buffer = this.#unquoted;
  #at = 0;
  #end = 0;

  /** Splits a line into `target`. The arguments are valid until the next call. */
  split(line: Buffer, target: CommandArguments): InlineResult {
    this.#line = line;
    this.#at = 0;
    this.#end = 0;
    target.clear(this.#unquoted);
    for (;;) {
      while (isSpace(line[this.#at])) this.#at += 1;
      if (this.#at >= line.length) return 'split';
      if (target.isFull) return 'too big inline request';
      const start = this.#end;
      if (!this.#argument()) return 'unbalanced quotes in request';
      target.add(start, this.#end);
    }
  }

  /** Reads one argument. False if a quote is not closed, or is followed by anything but a space. */
  #argument(): boolean {
    for (;;) {
      const byte = this.#line[this.#at];
      if (byte === undefined || isSpace(byte)) return true;
      this.#at += 1;
      if (byte !== DOUBLE_QUOTE && byte !== SINGLE_QUOTE) {
        this.#put(byte);
        continue;
      }
      const isClosed = byte === DOUBLE_QUOTE ? this.#doubleQuoted() : this.#singleQuoted();
      const next = this.#line[this.#at];
      return isClosed && (next === undefined || isSpace(next));
    }
  }

  #doubleQuoted(): boolean {
    for (;;) {
      const byte = this.#line[this.#at];
      if (byte === undefined) return false;
      this.#at += 1;
      if (byte === DOUBLE_QUOTE) return true;
      const escaped = this.#line[this.#at];
      if (byte !== BACKSLASH || escaped === undefined) {
        this.#put(byte);
        continue;
      }
      this.#at += 1;
      const hex = escaped === LOWER_X ? this.#line.toString('latin1', this.#at, this.#at + 2) : '';
      if (/^[0-9a-f]{2}$/i.test(hex)) {
        this.#at += 2;
        this.#put(Number.parseInt(hex, 16));
      } else this.#put(ESCAPES.get(escaped) ?? escaped);
    }
  }

  /** Between single quotes, only the quote itself can be escaped. */
  #singleQuoted(): boolean {
    for (;;) {
      const byte = this.#line[this.#at];
      if (byte === undefined) return false;
      this.#at += 1;
      if (byte === SINGLE_QUOTE) return true;
      if (byte === BACKSLASH && this.#line[this.#at] === SINGLE_QUOTE) {
        this.#at += 1;
        this.#put(SINGLE_QUOTE);
      } else this.#put(byte);
    }
  }

  #put(byte: number): void {
    this.#unquoted[this.#end] = byte;
    this.#end += 1;
  }
}

/** A space, or a control character from tab to carriage return. */
function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
}
