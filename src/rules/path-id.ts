/** The id of a rule that has no name but its place among nested descriptors. Grants belong to it: it must never come out otherwise. */
import { utf8Length } from '../api/bounded.ts';
import { FNV_OFFSET_BASIS, fnv1a } from '../api/text-hash.ts';
import { DEFINITION_ID_BYTES_MAX, type PathStep } from './rule-definition.ts';

const SEPARATING = /[%|=]/g;
/** Of 16 digits, and a sign that tells it is one. */
const HASH_LENGTH = 17;

/** As `domain|key=value|key`. Where that is too long, its beginning and a hash of all of it. */
export function shortId(domain: string, steps: readonly PathStep[]): string {
  const parts = steps.map(({ name, value }) =>
    value === undefined ? escaped(name) : `${escaped(name)}=${escaped(value)}`,
  );
  const id = [escaped(domain), ...parts].join('|');
  if (utf8Length(id) <= DEFINITION_ID_BYTES_MAX) return id;
  let start = '';
  let bytes = HASH_LENGTH;
  for (const letter of id) {
    bytes += utf8Length(letter);
    if (bytes > DEFINITION_ID_BYTES_MAX) break;
    start += letter;
  }
  return `${start}#${hash(id, FNV_OFFSET_BASIS)}${hash(id, 0x2545f491)}`;
}

function escaped(text: string): string {
  return text.replace(SEPARATING, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** FNV-1a, and a mix of what came out. Two that are equal are a mistake that is told, not a danger. */
function hash(text: string, seed: number): string {
  let value = fnv1a(text, seed);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0).toString(16).padStart(8, '0');
}
