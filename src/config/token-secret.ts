/** Creates API tokens and verifies their secrets. No other code handles a secret, and none is stored. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenAsked, TokenEntry } from '../api/token.ts';

/** 32 characters that are not easily confused; each encodes 5 bits. */
const ID_CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const ID_LENGTH = 8;
const SECRET_BYTES = 32;
/** A digest that no secret has. */
const NO_DIGEST = '0'.repeat(64);

/** A new token. */
export interface DrawnToken {
  /** To be shown once: `qt_<id>_<secret>`. */
  readonly token: string;
  readonly entry: TokenEntry;
}

/** Creates a token. @param createdMillis milliseconds since 1970 */
export function drawToken(asked: TokenAsked, createdMillis: number): DrawnToken {
  const id = [...randomBytes(ID_LENGTH)].map((byte) => ID_CHARACTERS.charAt(byte & 31)).join('');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const entry = { id, ...asked, sha256: digestOf(secret).toString('hex'), createdMillis };
  return { token: `qt_${id}_${secret}`, entry };
}

/** Verifies a secret in constant time, also if there is no such token. */
export function isSecretOf(entry: TokenEntry | undefined, secret: string): boolean {
  const isEqual = timingSafeEqual(digestOf(secret), Buffer.from(entry?.sha256 ?? NO_DIGEST, 'hex'));
  return isEqual && entry !== undefined;
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
