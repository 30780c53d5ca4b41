/**
 * Reads the header in which a gateway names the user of a request, if the configuration has such a header. As in
 * bodies, a value must have only one reading.
 */
import type { IncomingMessage } from 'node:http';
import { invalidInUser } from '../api/question.ts';
import { InvalidBodyError } from './json-body.ts';

/** The user that a header names. */
export interface HeaderUser {
  /** The name of the header, in lower case. */
  readonly header: string;
  readonly userId: string;
}

/**
 * A byte order mark is kept, so that the check refuses it. If it were dropped, two different texts would be one user
 * id.
 */
const HEADER_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The user in the configured header.
 *
 * @param header its name in lower case; undefined: none is configured
 * @returns undefined if the request has no such header
 * @throws InvalidBodyError naming the header, if it appears twice, is not UTF-8, or is no user id
 */
export function headerUserOf(
  request: Pick<IncomingMessage, 'rawHeaders'>,
  header: string | undefined,
): HeaderUser | undefined {
  if (header === undefined) return undefined;
  const userId = headerTextOf(request, header);
  if (userId === undefined) return undefined;
  const invalid = invalidInUser({ userId });
  if (invalid !== undefined) throw new InvalidBodyError(header, `${header}: ${invalid.message}`);
  return { header, userId };
}

/**
 * The text of a header.
 *
 * @param header its name in lower case
 * @returns undefined if the request has no such header
 * @throws InvalidBodyError naming the header, if it appears twice or is not UTF-8
 */
export function headerTextOf(
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>,
  header: string,
): string | undefined {
  let value: string | undefined;
  // Reads the raw headers, because Node would join two such headers into one value, which would be a third user.
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== header) continue;
    if (value !== undefined) throw new InvalidBodyError(header, `${header} must be there once at most`);
    value = rawHeaders[i + 1];
  }
  return value === undefined ? undefined : textOf(value, header);
}

/** Decodes UTF-8. Node reads every byte of a header as one character. */
function textOf(value: string, header: string): string {
  try {
    return HEADER_UTF8.decode(Buffer.from(value, 'latin1'));
  } catch {
    throw new InvalidBodyError(header, `${header} must be UTF-8, and some of its bytes are not`);
  }
}
