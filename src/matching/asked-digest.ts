/** What stands for all that a caller asked, so that a retry is known whatever the rules made of it. Pure. */
import type { Question } from '../api/question.ts';

/** FNV-1a over UTF-16 code units, from two beginnings: it has to tell mistakes apart, and nobody gains by finding two that look alike. */
const PRIME = 0x0100_0193;
const LOW_BEGIN = 0x811c_9dc5;
const HIGH_BEGIN = 0x2f0b_7a35;
const HIGH_BITS = 0xffff;

/** 1 to `ASKED_DIGEST_MAX`, equal for equal requests, in whatever order their descriptors came. The same on every node. */
export function askedDigest({ descriptors, rule, cost = 1, timestampMillis, settle }: Question): number {
  const said = [...descriptors].filter(([, value]) => value !== '');
  if (said.length > 1) said.sort(([a], [b]) => (a < b ? -1 : 1));
  // Texts in JSON have their ends: no other request says the same.
  const asked = [said, rule ?? null, cost, timestampMillis ?? null];
  const text = JSON.stringify(settle === true ? [...asked, 'settle'] : asked);
  let low = LOW_BEGIN;
  let high = HIGH_BEGIN;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    low = Math.imul(low ^ unit, PRIME);
    high = Math.imul(high ^ (unit + i), PRIME);
  }
  // The lowest bits of the product know the lowest of the text alone.
  high ^= high >>> 16;
  return (high & HIGH_BITS) * 2 ** 32 + (low >>> 0) || 1;
}
