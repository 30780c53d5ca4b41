/**
 * The key that a request is counted under by a rule, as text: each list of parts has one, no two lists have the same, and
 * none is longer than the limiter takes. What cannot be written so has no key.
 */
import { isBoundedText } from './bounded.ts';
import { USER } from './descriptors.ts';
import { DESCRIPTOR_VALUE_BYTES_MAX } from './question.ts';
import { KEY_BYTES_MAX } from './request.ts';
import { DIGEST_DIGITS, textDigest } from './text-hash.ts';

/** The key of no parts: everything is counted together. No list of parts looks like it, for there is no `=`. */
export const GLOBAL_KEY = '*';

/** Where these stand in a name or a value, they would be taken for what separates parts, or a name from its value. */
const SEPARATING = /[%,]/g;
const SEPARATING_NAMES = /[%,=]/g;
/** Only values of more letters are shortened. */
const WHOLE_LETTERS_MAX = 128;
const SHOWN_LETTERS = 64;
const DIGEST_AT_END = /#([0-9a-f]{16})$/;

/**
 * As `endpoint=/a,user=ada`. If that has more than `KEY_BYTES_MAX` bytes, each value of more than 128 letters is shortened to its
 * first 64 letters, `#` and a digest of 16 hex digits. Two values with the same beginning and digest share a key. Undefined if
 * the key is too long even then, or if a value is no Unicode.
 */
export function keyText(parts: readonly (readonly [name: string, value: string])[]): string | undefined {
  if (parts.length === 0) return GLOBAL_KEY;
  const whole = joined(parts, written);
  if (whole !== undefined) return whole;
  const isText = parts.every(([, value]) => value === '' || isBoundedText(value, DESCRIPTOR_VALUE_BYTES_MAX));
  return isText ? joined(parts, shortened) : undefined;
}

function joined(
  parts: readonly (readonly [name: string, value: string])[],
  valueText: (value: string) => string,
): string | undefined {
  let text = '';
  for (const [name, value] of parts) {
    // Before more is made of it than could be used.
    if (text.length + name.length > KEY_BYTES_MAX || value.length > DESCRIPTOR_VALUE_BYTES_MAX)
      return undefined;
    if (text !== '') text += ',';
    text += `${escaped(name, SEPARATING_NAMES)}=${valueText(value)}`;
  }
  return isBoundedText(text, KEY_BYTES_MAX) ? text : undefined;
}

/** The value in full. If it ends like a shortened one, its `#` is escaped: so no value can pretend to be another. */
function written(value: string): string {
  const text = escaped(value, SEPARATING);
  return value.length > DIGEST_DIGITS && DIGEST_AT_END.test(value)
    ? text.replace(DIGEST_AT_END, '%23$1')
    : text;
}

function shortened(value: string): string {
  const letters = Array.from(value);
  if (letters.length <= WHOLE_LETTERS_MAX) return written(value);
  return `${escaped(letters.slice(0, SHOWN_LETTERS).join(''), SEPARATING)}#${textDigest(value)}`;
}

function escaped(text: string, separating: RegExp): string {
  return text.replace(separating, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** The key of a user alone: what `userId` is counted under by rules with `key: user`. */
export function userKey(userId: string): string | undefined {
  return keyText([[USER, userId]]);
}

/** The names of the parts of a key, as rules write them: `ip/24/64`, `user`. */
export function partNamesIn(key: string): readonly string[] {
  if (key === GLOBAL_KEY) return [];
  return key.split(',').map((part) => decoded(part.slice(0, part.indexOf('='))));
}

/** What the parts of a key say, as a request would; of a shortened value its short form. @param key of some parts */
export function descriptorsIn(key: string): ReadonlyMap<string, string> {
  return new Map(
    key.split(',').map((part) => {
      const end = part.indexOf('=');
      const [name = ''] = decoded(part.slice(0, end)).split('/');
      return [name, decoded(part.slice(end + 1))] as const;
    }),
  );
}

function decoded(text: string): string {
  return text.replace(/%(25|2c|3d)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
