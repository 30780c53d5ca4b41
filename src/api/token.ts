/**
 * Tokens, by which callers show who they are, as every door takes them: what a token is, and its check. Nothing here holds a secret:
 * what is kept of one is its digest.
 */
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import { InvalidFieldError, objectAt } from './fields.ts';

/** `decide` asks for decisions, `read` reads what nodes tell, `admin` may do everything. */
export const ROLES = ['decide', 'read', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Of a cluster; one more is refused. */
export const TOKENS_MAX = 1_024;
export const TOKEN_NAME_BYTES_MAX = 64;
export const TOKEN_ID = /^[a-z0-9]{8}$/;
/** Its id, and its secret: 256 bits in base64url. */
const TOKEN = /^qt_([a-z0-9]{8})_([\w-]{43})$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** What people are told of a token. */
export interface TokenInfo {
  readonly id: string;
  readonly role: Role;
  /** For people, 1 to `TOKEN_NAME_BYTES_MAX` bytes. */
  readonly name: string;
  /** Milliseconds since 1970 by the node that made it, for people; absent: nobody wrote it down. */
  readonly createdMillis?: number;
}

/** What is kept of one. */
export interface TokenEntry extends TokenInfo {
  /** SHA-256 of the secret, in hex. A fast digest is enough: nobody guesses 256 random bits. */
  readonly sha256: string;
}

export function infoOfToken(entry: TokenEntry): TokenInfo {
  const { sha256: _, ...info } = entry;
  return info;
}

/** Who asks, with a token that is valid. */
export type Caller = Pick<TokenInfo, 'id' | 'role'>;

/** The parts of a token as it is shown; undefined if it has another form. */
export function partsOfToken(token: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = TOKEN.exec(token) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** @throws InvalidFieldError naming the field under `path` and its bound */
export function validateTokenEntry(value: unknown, path: string): TokenEntry {
  const fields = objectAt(value, path, ['id', 'role', 'name', 'sha256', 'createdMillis']);
  const { id, sha256, createdMillis } = fields;
  if (typeof id !== 'string' || !TOKEN_ID.test(id))
    throw new InvalidFieldError(`${path}.id`, 'must be 8 letters in lower case and digits');
  if (typeof sha256 !== 'string' || !SHA256.test(sha256))
    throw new InvalidFieldError(`${path}.sha256`, 'must be 64 hexadecimal digits in lower case');
  if (createdMillis !== undefined && !isBoundedInteger(createdMillis, 0, Number.MAX_SAFE_INTEGER))
    throw new InvalidFieldError(`${path}.createdMillis`, 'must be an integer >= 0');
  const created = createdMillis === undefined ? {} : { createdMillis };
  return { id, ...validateTokenAsked(fields, `${path}.`), sha256, ...created };
}

/** What a token to be made is to be. */
export type TokenAsked = Pick<TokenInfo, 'role' | 'name'>;

/** @throws InvalidFieldError naming the field behind `prefix` and its bound */
export function validateTokenAsked(
  { role, name }: { readonly [Field in keyof TokenAsked]?: unknown },
  prefix = '',
): TokenAsked {
  const known = ROLES.find((each) => each === role);
  if (known === undefined) throw new InvalidFieldError(`${prefix}role`, `must be one of ${ROLES.join(', ')}`);
  if (!isBoundedText(name, TOKEN_NAME_BYTES_MAX) || /\p{Cc}/u.test(name))
    throw new InvalidFieldError(
      `${prefix}name`,
      `must be text of 1 to ${TOKEN_NAME_BYTES_MAX} bytes without control characters`,
    );
  return { role: known, name };
}

/** Who may ask what, as a node knows it. */
export interface AccessBehindDoor {
  /** `open`: everybody may ask. `closed`: who shows a token. `unknown`: it is closed, and by which tokens is not known yet. */
  readonly mode: () => 'open' | 'closed' | 'unknown';
  /** Whose token this is; undefined if it is none. Takes as long for every text of the form of a token. */
  readonly callerOf: (token: string) => Caller | undefined;
  /** The same of a caller who showed it before; undefined if it was revoked. */
  readonly callerById: (id: string) => Caller | undefined;
  readonly tokens: () => readonly (TokenInfo & { readonly isConfigured: boolean })[];
  /** Somebody showed a text that is no valid token. */
  readonly failed: (door: 'http' | 'resp' | 'grpc') => void;
}
