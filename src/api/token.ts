/**
 * Tokens, by which callers identify themselves in every protocol: their parts, their bounds and their check. Secrets
 * are not kept; a token is stored as a digest.
 */
import { isBoundedInteger, isBoundedText } from './bounded.ts';
import { InvalidFieldError, objectAt } from './fields.ts';

/** The roles of tokens. `decide` asks for decisions, `read` reads reports of nodes, `admin` may do everything. */
export const ROLES = ['decide', 'read', 'admin'] as const;
/** One of `ROLES`. */
export type Role = (typeof ROLES)[number];

/** The most tokens of a cluster. */
export const TOKENS_MAX = 1_024;
/** The longest name of a token in UTF-8 bytes. */
export const TOKEN_NAME_BYTES_MAX = 64;
/** The form of a token's id. */
export const TOKEN_ID = /^[a-z0-9]{8}$/;
/** A token: its id, and its secret of 256 bits in base64url. */
const TOKEN = /^qt_([a-z0-9]{8})_([\w-]{43})$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** The public part of a token. */
export interface TokenInfo {
  readonly id: string;
  readonly role: Role;
  /** A name for people, 1 to `TOKEN_NAME_BYTES_MAX` bytes. */
  readonly name: string;
  /**
   * When it was created, for people: milliseconds since 1970 by the clock of the node that created it. Absent:
   * unknown.
   */
  readonly createdMillis?: number;
}

/** A token as it is stored. */
export interface TokenEntry extends TokenInfo {
  /** The SHA-256 of the secret, in hex. A fast digest is enough, because 256 random bits cannot be guessed. */
  readonly sha256: string;
}

/** The public part of a stored token. */
export function infoOfToken(entry: TokenEntry): TokenInfo {
  const { sha256: _, ...info } = entry;
  return info;
}

/** A caller with a valid token. */
export type Caller = Pick<TokenInfo, 'id' | 'role'>;

/** Splits a token into its parts. Undefined if the text does not have the form of a token. */
export function partsOfToken(token: string): { readonly id: string; readonly secret: string } | undefined {
  const [, id, secret] = TOKEN.exec(token) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** Checks a stored token. @throws InvalidFieldError naming the field under `path` and its bound */
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

/** The role and the name of a token to create. */
export type TokenAsked = Pick<TokenInfo, 'role' | 'name'>;

/**
 * Checks the role and the name of a token. @throws InvalidFieldError naming the field behind `prefix` and its bound
 */
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

/** How a listener checks callers, as its node knows the tokens. */
export interface AccessApi {
  /**
   * `open`: everybody may ask. `closed`: callers need a token. `unknown`: the cluster is closed, but this node does
   * not know its tokens yet.
   */
  readonly mode: () => 'open' | 'closed' | 'unknown';
  /**
   * The caller with this token; undefined if it is not valid. Takes equally long for every text that has the form of
   * a token.
   */
  readonly callerOf: (token: string) => Caller | undefined;
  /** The same for a caller who sent the token before, by its id. Undefined if the token was revoked. */
  readonly callerById: (id: string) => Caller | undefined;
  /** All tokens. `isConfigured`: it is in the configuration of the nodes, so it cannot be revoked. */
  readonly tokens: () => readonly (TokenInfo & { readonly isConfigured: boolean })[];
  /** Counts a request with a text that is not a valid token. @param listener the kind of listener */
  readonly failed: (listener: 'http' | 'resp' | 'grpc') => void;
}
