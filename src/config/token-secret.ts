/** Draws tokens, and tells right secrets from wrong ones. The only place that sees a secret; it keeps none. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { TokenAsked, TokenEntry } from '../api/token.ts';

/** 32 characters that nobody takes for one another: each is 5 bits. */
const ID_CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const ID_LENGTH = 8;
const SECRET_BYTES = 32;
/** Of no secret. */
const NO_DIGEST = '0'.repeat(64);

export interface DrawnToken {
  /** To be shown once: `qt_<id>_<secret>`. */
  readonly token: string;
  readonly entry: TokenEntry;
}

/** @param createdMillis since 1970 */
export function drawToken(asked: TokenAsked, createdMillis: number): DrawnToken {
  const id = [...randomBytes(ID_LENGTH)].map((byte) => ID_CHARACTERS.charAt(byte & 31)).join('');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const entry = { id, ...asked, sha256: digestOf(secret).toString('hex'), createdMillis };
  return { token: `qt_${id}_${secret}`, entry };
}

/** In the same time whatever differs, also where there is no such token. */
export function isSecretOf(entry: TokenEntry | undefined, secret: string): boolean {
  const isEqual = timingSafeEqual(digestOf(secret), Buffer.from(entry?.sha256 ?? NO_DIGEST, 'hex'));
  return isEqual && entry !== undefined;
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
