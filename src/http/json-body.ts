/**
 * Decodes request bodies of JSON or plain text. A value that becomes a key must have only one reading. So bytes that
 * are not UTF-8 are refused instead of replaced, and so are other encodings and JSON keys that appear twice.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { type JsonPath, pathText, repeatedKeysIn } from '../api/repeated-keys.ts';

/** A body that is malformed. `field` is the name of the field, or `body`. */
export class InvalidBodyError extends Error {
  readonly code = 'INVALID_BODY';
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.name = 'InvalidBodyError';
    this.field = field;
  }
}

/** The headers announce an encoding that is not supported. */
export class UnsupportedBodyError extends Error {
  readonly code = 'UNSUPPORTED_BODY';

  constructor(message: string) {
    super(message);
    this.name = 'UnsupportedBodyError';
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
/** The charset parameter of a media type; its value is a token or a quoted string. */
const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s]*))/gi;
/** The most characters of an unknown field name that an error shows. */
const SHOWN_CHARACTERS_MAX = 64;

/** A parsed body, with what `JSON.parse` does not report. */
export interface JsonBody {
  readonly value: unknown;
  /** The paths of repeated keys. */
  readonly repeated: readonly JsonPath[];
}

/**
 * Parses a JSON body.
 *
 * @throws UnsupportedBodyError if the headers announce another encoding than plain UTF-8
 * @throws InvalidBodyError if the bytes are not UTF-8 or not JSON, or if a key is repeated
 */
export function parseJsonBody(headers: IncomingHttpHeaders, bytes: Uint8Array): unknown {
  const { value, repeated } = readJsonBody(headers, bytes);
  const [first] = repeated;
  if (first !== undefined) throw repeatedKey(first);
  return value;
}

/**
 * Parses a JSON body, for callers that handle repeated keys themselves.
 *
 * @throws UnsupportedBodyError if the headers announce another encoding than plain UTF-8
 * @throws InvalidBodyError if the bytes are not UTF-8 or not JSON
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

/** The error for a repeated key. */
export function repeatedKey(path: JsonPath): InvalidBodyError {
  const field = pathText(path);
  return new InvalidBodyError(field, `${field} must appear once`);
}

/**
 * Decodes a text body.
 *
 * @throws UnsupportedBodyError if the headers announce another encoding than plain UTF-8
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
 * The fields of a body. Unknown fields are refused, because a misspelt `cost` must not silently become 1.
 *
 * @param needs for the error message: what the object must have
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

/**
 * Refuses a body with any field, for routes that take none. To ignore a field would mislead its caller. @throws
 * InvalidBodyError
 */
export function refuseFields(body: unknown): void {
  if (body !== undefined && body !== null) fieldsOf(body, [], 'no fields, or absent');
}
