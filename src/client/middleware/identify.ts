/**
 * Identifiers: functions that return whose budget a request is charged to, and ways to combine them. Each result begins
 * with its kind, so that a user whose name is the text of an address does not use the budget of that address.
 */
import { createHash } from 'node:crypto';
import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { USER_ID_BYTES_MAX } from '../../api/request.ts';
import { InvalidOptionError, InvalidRequestError } from '../errors.ts';
import { type AddressOptions, clientAddress, networkOf } from './address.ts';
import type { RequestFacts } from './facts.ts';

/** A value, or a promise of it. */
export type MaybeLater<T> = T | Promise<T>;
type Id = string | null | undefined;
/**
 * Returns the id of a request. Undefined, null or empty text: the request has no such id. `R` is the request type of
 * the framework.
 */
export type Identifier<R> = (request: R, facts: RequestFacts) => MaybeLater<Id>;

/** 128 bits, so two keys with the same digest cannot be found. */
const DIGEST_CHARACTERS = 32;
const IPV6_BITS = 64;

/**
 * Identifies a request by the user that your service has authenticated. @example byUser((request) => request.user?.id)
 */
export function byUser<R>(userOf: (request: R) => MaybeLater<Id>): Identifier<R> {
  return async (request) => {
    const user = knownId(await userOf(request));
    return user === undefined ? undefined : `user:${user}`;
  };
}

/**
 * Identifies a request by the API key in a header. The cluster only sees a digest of the key: `key:` and the first 32
 * hexadecimal digits of its SHA-256 in UTF-16 little-endian. Check the key before: a client that can invent keys gets a
 * new budget with each.
 *
 * @param header default `x-api-key`. With `authorization`, the key is the text after the scheme.
 */
export function byApiKey(header = 'x-api-key'): Identifier<unknown> {
  const name = header.toLowerCase();
  return (_, facts) => {
    const value = facts.header(name)?.trim();
    const key = name === 'authorization' ? /^\S+\s+(.*)$/s.exec(value ?? '')?.[1] : value;
    return key === undefined || key === '' ? undefined : `key:${digestOf(key)}`;
  };
}

/** Options of `byIp`. */
export interface ByIpOptions extends AddressOptions {
  /** IPv6 addresses with this many equal first bits are one client: 1 to 128, default 64. */
  readonly ipv6Bits?: number;
}

/** Identifies a request by the address of the client. @throws InvalidOptionError */
export function byIp({ ipv6Bits = IPV6_BITS, ...options }: ByIpOptions = {}): Identifier<unknown> {
  if (!isBoundedInteger(ipv6Bits, 1, 128))
    throw new InvalidOptionError('ipv6Bits', 'must be an integer from 1 to 128');
  const addressOf = clientAddress(options);
  return (_, facts) => {
    const address = addressOf(facts);
    return address === undefined ? undefined : `ip:${networkOf(address, ipv6Bits)}`;
  };
}

/** Uses the first identifier that returns an id. @example firstOf(byUser(...), byIp()) */
export function firstOf<R>(...identifiers: readonly Identifier<R>[]): Identifier<R> {
  return async (request, facts) => {
    for (const each of identifiers) {
      // One after the other: the next identifier is only called if this one returned nothing.
      // oxlint-disable-next-line no-await-in-loop
      const id = knownId(await each(request, facts));
      if (id !== undefined) return id;
    }
    return undefined;
  };
}

/**
 * Combines all ids to one budget. If one identifier returns nothing, so does the combination. @example
 * allOf(byUser(...), byIp())
 */
export function allOf<R>(...identifiers: readonly Identifier<R>[]): Identifier<R> {
  return async (request, facts) => {
    const said = await Promise.all(identifiers.map(async (each) => each(request, facts)));
    const ids = said.map(knownId);
    if (ids.length === 0 || ids.includes(undefined)) return undefined;
    return ids.map((id) => id?.replace(/[%&]/g, encodeURIComponent)).join('&');
  };
}

/**
 * Returns the id as a key that the cluster accepts: an id that is too long, or not valid Unicode, is replaced by its
 * digest.
 */
export function keyOf(id: string): string {
  return isBoundedText(id, USER_ID_BYTES_MAX) ? id : `digest:${digestOf(id)}`;
}

/**
 * Returns the result of an identifier as text, or undefined for no id. Empty text counts as no id: otherwise all
 * clients without an id would use one budget.
 *
 * @throws InvalidRequestError for other types, because all objects convert to the same text
 */
export function knownId(id: unknown): string | undefined {
  if (id === undefined || id === null || id === '') return undefined;
  if (typeof id === 'string') return id;
  if (typeof id === 'bigint' || (typeof id === 'number' && Number.isSafeInteger(id))) return String(id);
  throw new InvalidRequestError(
    'identify',
    `identify must return text or an integer, and not a ${typeof id}`,
  );
}

function digestOf(text: string): string {
  // UTF-16 code units, because UTF-8 would map different invalid texts to the same bytes.
  return createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex').slice(0, DIGEST_CHARACTERS);
}
