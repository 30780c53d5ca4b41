/**
 * Bodies of JSON or plain text, from the bytes as they came. What becomes a key must be read in one way only, so bytes that are
 * not UTF-8 are refused instead of being replaced, and so is every other way to write text down, and a key that stands twice. Knows no field by name.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type JsonPath, pathText, repeatedKeysIn } from '../api/repeated-keys.ts';

/** A body that cannot be asked about. `field` is the name in the body, or `body`. */
export class InvalidBodyError extends Error {
  readonly code = 'INVALID_BODY';
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.name = 'InvalidBodyError';
    this.field = field;
  }
}

/** The headers announce a body that is not understood here. */
export class UnsupportedBodyError extends Error {
  readonly code = 'UNSUPPORTED_BODY';

  constructor(message: string) {
    super(message);
    this.name = 'UnsupportedBodyError';
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** A parameter of a media type: a name, and a token or a quoted string. */
const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s]*))/gi;
/** Of a name that is not known. */
const SHOWN_CHARACTERS_MAX = 64;

/** A body with what `JSON.parse` does not tell of it. */
export interface JsonBody {
  readonly value: unknown;
  /** Keys that an object in it has more than once. */
  readonly repeated: readonly JsonPath[];
}

/**
 * @throws UnsupportedBodyError if the headers speak of another encoding than plain UTF-8
 * @throws InvalidBodyError if the bytes are not UTF-8, or not JSON, or an object in it has a key more than once
 */
export function parseJsonBody(headers: IncomingHttpHeaders, bytes: Uint8Array): unknown {
  const { value, repeated } = readJsonBody(headers, bytes);
  const [first] = repeated;
  if (first !== undefined) throw repeatedKey(first);
  return value;
}

/**
 * For those who judge themselves what becomes of repeated keys.
 *
 * @throws UnsupportedBodyError if the headers speak of another encoding than plain UTF-8
 * @throws InvalidBodyError if the bytes are not UTF-8, or not JSON
 */
export function readJsonBody(headers: IncomingHttpHeaders, bytes: Uint8Array): JsonBody {
  const text = parseTextBody(headers, bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InvalidBodyError('body', `body must be JSON: ${error instanceof Error ? error.message : ''}`);
  }
  return { value, repeated: repeatedKeysIn(text, value) };
}

export function repeatedKey(path: JsonPath): InvalidBodyError {
  const field = pathText(path);
  return new InvalidBodyError(field, `${field} must be there once, and is there more than once`);
}

/**
 * @throws UnsupportedBodyError if the headers speak of another encoding than plain UTF-8
 * @throws InvalidBodyError if the bytes are not UTF-8
 */
export function parseTextBody(headers: IncomingHttpHeaders, bytes: Uint8Array): string {
  checkEncoding(headers);
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new InvalidBodyError('body', 'body must be UTF-8, and some of its bytes are not');
  }
}

function checkEncoding(headers: IncomingHttpHeaders): void {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers;
  if (coding.trim().toLowerCase() !== 'identity') {
    throw new UnsupportedBodyError(
      `body must be sent as it is, without content-encoding: ${coding.slice(0, 64)}`,
    );
  }
  if (!type.includes(';')) return;
  for (const [, quoted, token] of type.matchAll(CHARSET)) {
    const charset = (quoted ?? token ?? '').toLowerCase();
    if (charset !== 'utf-8' && charset !== 'utf8') {
      throw new UnsupportedBodyError(`body must be UTF-8, but its charset is '${charset.slice(0, 64)}'`);
    }
  }
}

/**
 * The fields of a body. Others than these are refused: a misspelt `cost` must not silently become 1.
 *
 * @param needs what the object must have, for people
 * @throws InvalidBodyError
 */
export function fieldsOf<Name extends string>(
  body: unknown,
  names: readonly Name[],
  needs: string,
): { readonly [Field in Name]?: unknown } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new InvalidBodyError('body', `body must be a JSON object with ${needs}`);
  }
  const known: readonly string[] = names;
  const other = Object.keys(body).find((name) => !known.includes(name));
  if (other !== undefined) {
    const shown = other.slice(0, SHOWN_CHARACTERS_MAX);
    const fields = names.length === 0 ? 'there are none' : `the fields are ${names.join(', ')}`;
    throw new InvalidBodyError(shown, `${shown} is not a field; ${fields}`);
  }
  return body;
}

/** Refuses a body with any field, for routes that take none: a field that is ignored would mislead its caller. @throws InvalidBodyError */
export function refuseFields(body: unknown): void {
  if (body !== undefined && body !== null) fieldsOf(body, [], 'no fields, or absent');
}
