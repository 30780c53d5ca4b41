/** Answers to commands other than requests for a grant, as data: their bytes are the reply writer's business. */

/**
 * A number is an integer, a string a bulk string, null the null of either protocol. Bytes are a bulk string as they are; they are
 * written before the command that answers with them is gone. A map becomes an array of its keys and
 * values, and a set an array, where a client speaks RESP2.
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

export interface ErrorReply {
  readonly kind: 'error';
  /** Begins with a word in capitals, by which clients tell errors apart. */
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

/** A command that is answered more than once. */
interface SeveralReplies {
  readonly kind: 'several';
  readonly replies: readonly Reply[];
}

/** An array whose items are the answers that follow. */
interface HeaderReply {
  readonly kind: 'header';
  readonly count: number;
}

export const OK: Reply = { kind: 'simple', text: 'OK' };

export function simple(text: string): SimpleReply {
  return { kind: 'simple', text };
}

/** @param text with its leading word */
export function error(text: string): ErrorReply {
  return { kind: 'error', text };
}

/** @param text without the leading `ERR` */
export function failed(text: string): ErrorReply {
  return error(`ERR ${text}`);
}

export function mapOf(entries: Readonly<Record<string, Reply>>): MapReply {
  return { kind: 'map', entries: Object.entries(entries) };
}

export function setOf(items: readonly Reply[]): SetReply {
  return { kind: 'set', items };
}

export const SYNTAX_ERROR: ErrorReply = failed('syntax error');
