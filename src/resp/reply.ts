/** Answers to commands as plain data. `ReplyWriter` encodes them; only decisions are written directly. */

/**
 * A number is an integer, a string is a bulk string, and null is the null of the protocol version. A `Buffer` is a
 * bulk string; it is encoded before the command's arguments become invalid. In RESP2, a map becomes an array of keys
 * and values, and a set becomes an array.
 */
export type Reply =
  | number
  | string
  | Buffer
  | null
  | readonly Reply[]
  | SimpleReply
  | ErrorReply
  | MapReply
  | SetReply
  | PushReply
  | SeveralReplies
  | HeaderReply;

interface SimpleReply {
  readonly kind: 'simple';
  readonly text: string;
}

/** An error. */
export interface ErrorReply {
  readonly kind: 'error';
  /** Begins with a word in upper case, by which clients distinguish errors. */
  readonly text: string;
}

interface MapReply {
  readonly kind: 'map';
  readonly entries: readonly (readonly [string, Reply])[];
}

interface SetReply {
  readonly kind: 'set';
  readonly items: readonly Reply[];
}

/** A message to a subscriber. In RESP2 it is an array. */
interface PushReply {
  readonly kind: 'push';
  readonly items: readonly Reply[];
}

/** Several answers to one command. */
interface SeveralReplies {
  readonly kind: 'several';
  readonly replies: readonly Reply[];
}

/** The header of an array; its items are the answers that follow. */
interface HeaderReply {
  readonly kind: 'header';
  readonly count: number;
}

/** `+OK`. */
export const OK: Reply = { kind: 'simple', text: 'OK' };

/** A simple string. */
export function simple(text: string): SimpleReply {
  return { kind: 'simple', text };
}

/** @param text with its leading word */
export function error(text: string): ErrorReply {
  return { kind: 'error', text };
}

/** An `ERR`. @param text without the leading word */
export function failed(text: string): ErrorReply {
  return error(`ERR ${text}`);
}

/** A map with these entries. */
export function mapOf(entries: Readonly<Record<string, Reply>>): MapReply {
  return { kind: 'map', entries: Object.entries(entries) };
}

/** A set of these items. */
export function setOf(items: readonly Reply[]): SetReply {
  return { kind: 'set', items };
}

/** The error of Redis for options that cannot be parsed. */
export const SYNTAX_ERROR: ErrorReply = failed('syntax error');

/** The error for an argument that is not UTF-8. */
export function notUtf8(field: string): ErrorReply {
  return failed(`${field} must be UTF-8, and some of its bytes are not`);
}
