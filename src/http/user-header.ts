/**
 * The header in which a gateway names the user of a request, where the configuration has one. Text is read in one way only, as in
 * bodies. Knows nothing of what a user may ask.
 */
import type { IncomingMessage } from 'node:http';
import { invalidInUser } from '../api/question.ts';
import { InvalidBodyError } from './json-body.ts';

/** Who a header says that the user is. */
export interface HeaderUser {
  /** Of the header, in lower case. */
  readonly header: string;
  readonly userId: string;
}

/** A byte order mark is kept, as it is refused: it would make two ids of one. */
const HEADER_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * @param header in lower case; undefined: none is read
 * @returns undefined where the request has no such header
 * @throws InvalidBodyError naming the header, if it is there twice, is not UTF-8, or no user id
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
 * @param header in lower case
 * @returns undefined where the request has no such header
 * @throws InvalidBodyError naming the header, if it is there twice or is not UTF-8
 */
export function headerTextOf(
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>,
  header: string,
): string | undefined {
  let value: string | undefined;
  // As they came: Node would join the values of two such headers to one, which is a third user.
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== header) continue;
    if (value !== undefined) throw new InvalidBodyError(header, `${header} must be there once at most`);
    value = rawHeaders[i + 1];
  }
  return value === undefined ? undefined : textOf(value, header);
}

/** Node reads every byte of a header as one character. */
function textOf(value: string, header: string): string {
  try {
    return HEADER_UTF8.decode(Buffer.from(value, 'latin1'));
  } catch {
    throw new InvalidBodyError(header, `${header} must be UTF-8, and some of its bytes are not`);
  }
}
