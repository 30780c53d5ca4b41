/** What stands for all that a caller asked, so that a retry is known whatever the rules made of it. Pure. */
import { createHash } from 'node:crypto';
import type { Question } from '../api/question.ts';

const DIGEST_BYTES = 6;

/** 1 to `ASKED_DIGEST_MAX`, equal for equal requests, in whatever order their descriptors came. */
export function askedDigest({ descriptors, rule, cost = 1, timestampMillis }: Question): number {
  const sorted = [...descriptors].filter(([, value]) => value !== '').sort(([a], [b]) => (a < b ? -1 : 1));
  const text = JSON.stringify([sorted, rule ?? null, cost, timestampMillis ?? null]);
  return createHash('sha256').update(text).digest().readUIntBE(0, DIGEST_BYTES) || 1;
}
