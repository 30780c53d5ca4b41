/**
 * Hashes what a caller asked. A partition stores the hash with the request id, and so recognises a retry even if
 * the rules have changed since. Pure functions.
 */
import type { Question } from '../api/question.ts';

/**
 * FNV-1a over UTF-16 code units, with two different start values. It only has to catch mistakes of callers; nobody
 * gains anything by constructing a collision.
 */
const PRIME = 0x0100_0193;
const LOW_BEGIN = 0x811c_9dc5;
const HIGH_BEGIN = 0x2f0b_7a35;
const HIGH_BITS = 0xffff;

/**
 * The digest of a question: an integer from 1 to `ASKED_DIGEST_MAX`. Equal questions have equal digests on every
 * node, whatever the order of their descriptors. Empty descriptors count as absent.
 */
export function askedDigest({ descriptors, rule, cost = 1, timestampMillis, settle }: Question): number {
  const said = [...descriptors].filter(([, value]) => value !== '');
  if (said.length > 1) said.sort(([a], [b]) => (a < b ? -1 : 1));
  // JSON quotes its strings, so two different questions never give the same text.
  const asked = [said, rule ?? null, cost, timestampMillis ?? null];
  const text = JSON.stringify(settle === true ? [...asked, 'settle'] : asked);
  let low = LOW_BEGIN;
  let high = HIGH_BEGIN;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, PRIME);
    high = Math.imul(high ^ (unit + i), PRIME);
  }
  // The lowest bits of the product depend only on the lowest bits of the text, so mix in higher ones.
  high ^= high >>> 16;
  return (high & HIGH_BITS) * 2 ** 32 + (low >>> 0) || 1;
}
