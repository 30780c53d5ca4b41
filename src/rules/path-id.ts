/** The id of a rule that has no name but its place among nested descriptors. Grants belong to it: it must never come out otherwise. */
import { utf8Length } from '../api/bounded.ts';
import { DIGEST_DIGITS, textDigest } from '../api/text-hash.ts';
import { DEFINITION_ID_BYTES_MAX, type PathStep } from './rule-definition.ts';

const SEPARATING = /[%|=]/g;
/** `#` and a digest. */
const HASH_LENGTH = 1 + DIGEST_DIGITS;

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
  return `${start}#${textDigest(id)}`;
}

function escaped(text: string): string {
  return text.replace(SEPARATING, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
