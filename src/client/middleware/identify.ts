/**
 * Whose budget a request is charged to: identifiers, and combinations of them. Each begins with its kind, so that a user who calls
 * himself like an address does not share its budget.
 */
import { createHash } from 'node:crypto';
import { isBoundedInteger, isBoundedText } from '../../api/bounded.ts';
import { KEY_BYTES_MAX } from '../../api/request.ts';
import { InvalidOptionError, InvalidRequestError } from '../errors.ts';
import { type AddressOptions, clientAddress, networkOf } from './address.ts';
import type { RequestFacts } from './facts.ts';

/** At once, or once a promise is fulfilled. */
export type MaybeLater<T> = T | Promise<T>;
type Id = string | null | undefined;
/** Undefined, null or no text: it says nothing of this request. `R` is the request of the framework. */
export type Identifier<R> = (request: R, facts: RequestFacts) => MaybeLater<Id>;

/** 128 bits: nobody finds two keys of one digest. */
const DIGEST_CHARACTERS = 32;
const IPV6_BITS = 64;

/** By who is logged in, as your service knows. @example byUser((request) => request.user?.id) */
export function byUser<R>(userOf: (request: R) => MaybeLater<Id>): Identifier<R> {
  return async (request) => {
    const user = knownId(await userOf(request));
    return user === undefined ? undefined : `user:${user}`;
  };
}

/**
 * By a key in a header, of which the cluster only gets a digest. The header must be checked before: who may invent keys has as many
 * budgets as he likes.
 *
 * @param header default `x-api-key`; of `authorization` what follows the scheme, and nothing if nothing does
 */
export function byApiKey(header = 'x-api-key'): Identifier<unknown> {
  const name = header.toLowerCase();
  return (_, facts) => {
    const value = facts.header(name)?.trim();
    const key = name === 'authorization' ? /^\S+\s+(.*)$/s.exec(value ?? '')?.[1] : value;
    return key === undefined || key === '' ? undefined : `key:${digestOf(key)}`;
  };
}

export interface ByIpOptions extends AddressOptions {
  /** So many first bits of an IPv6 address are one client: 1 to 128, default 64. */
  readonly ipv6Bits?: number;
}

/** By address, behind proxies that are trusted. @throws InvalidOptionError */
export function byIp({ ipv6Bits = IPV6_BITS, ...options }: ByIpOptions = {}): Identifier<unknown> {
  if (!isBoundedInteger(ipv6Bits, 1, 128))
    throw new InvalidOptionError('ipv6Bits', 'must be an integer from 1 to 128');
  const addressOf = clientAddress(options);
  return (_, facts) => {
    const address = addressOf(facts);
    return address === undefined ? undefined : `ip:${networkOf(address, ipv6Bits)}`;
  };
}

/** The first that says something: `firstOf(byUser(...), byIp())`. */
export function firstOf<R>(...identifiers: readonly Identifier<R>[]): Identifier<R> {
  return async (request, facts) => {
    for (const each of identifiers) {
      // Nobody asks the next before this one has said nothing.
      // oxlint-disable-next-line no-await-in-loop
      const id = knownId(await each(request, facts));
      if (id !== undefined) return id;
    }
    return undefined;
  };
}

/** All of them together are one budget: `allOf(byUser(...), byIp())`. If one says nothing, they all do. */
export function allOf<R>(...identifiers: readonly Identifier<R>[]): Identifier<R> {
  return async (request, facts) => {
    const said = await Promise.all(identifiers.map(async (each) => each(request, facts)));
    const ids = said.map(knownId);
    if (ids.length === 0 || ids.includes(undefined)) return undefined;
    return ids.map((id) => id?.replace(/[%&]/g, encodeURIComponent)).join('&');
  };
}

/** As the cluster takes it: what is too long, or no text of Unicode, becomes its digest. */
export function keyOf(id: string): string {
  return isBoundedText(id, KEY_BYTES_MAX) ? id : `digest:${digestOf(id)}`;
}

/**
 * What an identifier said, or undefined for nobody. Text that stands for nothing would be one budget for all who have none.
 *
 * @throws InvalidRequestError for what is no text: all objects would have the same
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
  // By code units: two texts that are no Unicode must not become one.
  return createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex').slice(0, DIGEST_CHARACTERS);
}
