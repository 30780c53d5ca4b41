/**
 * Makes the id of a rule that is only identified by its place among nested descriptors. Grants are stored under it,
 * so it must stay the same in every version.
 */
import { utf8Length } from '../api/bounded.ts';
import { DIGEST_DIGITS, textDigest } from '../api/text-hash.ts';
import { DEFINITION_ID_BYTES_MAX, type PathStep } from './rule-definition.ts';

const SEPARATING = /[%|=]/g;
/** `#` and a digest. */
const HASH_LENGTH = 1 + DIGEST_DIGITS;

/** The id, such as `domain|key=value|key`. If that is too long: its beginning and a hash of all of it. */
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
