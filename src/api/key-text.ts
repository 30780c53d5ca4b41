/**
 * Builds the text of the key that a rule counts a request under, such as `user=ada`. Each list of parts has one key,
 * and different lists have different keys. No key is longer than `KEY_BYTES_MAX`. A list that cannot be written
 * within that has no key.
 */
import { isBoundedText } from './bounded.ts';
import { USER } from './descriptors.ts';
import { DESCRIPTOR_VALUE_BYTES_MAX } from './question.ts';
import { KEY_BYTES_MAX } from './request.ts';
import { DIGEST_DIGITS, textDigest } from './text-hash.ts';

/**
 * The key of an empty list of parts: all requests are counted together. No other key has this text, because it has no
 * `=`.
 */
export const GLOBAL_KEY = '*';

/** Characters that are escaped in values, because they separate parts. */
const SEPARATING = /[%,]/g;
/** Characters that are escaped in names: the same, and `=`, which separates a name from its value. */
const SEPARATING_NAMES = /[%,=]/g;
/** Only values with more letters than this are shortened. */
const WHOLE_LETTERS_MAX = 128;
const SHOWN_LETTERS = 64;
const DIGEST_AT_END = /#([0-9a-f]{16})$/;

/**
 * The key of these parts, such as `endpoint=/a,user=ada`. If it has more than `KEY_BYTES_MAX` bytes, each value of
 * more than 128 letters is shortened to its first 64 letters, `#`, and a digest of 16 hex digits. Two values with the
 * same start and the same digest have the same key.
 *
 * @returns undefined if the key is too long even then, or if a value is not valid Unicode
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
    // Checked here, before a long text is built that could not be used.
    if (text.length + name.length > KEY_BYTES_MAX || value.length > DESCRIPTOR_VALUE_BYTES_MAX)
      return undefined;
    if (text !== '') text += ',';
    text += `${escaped(name, SEPARATING_NAMES)}=${valueText(value)}`;
  }
  return isBoundedText(text, KEY_BYTES_MAX) ? text : undefined;
}

/**
 * The value in full. If it ends like a shortened value, its `#` is escaped, so that no value can pretend to be
 * another.
 */
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

/** The key of a user alone, as rules with `key: user` count it. Undefined: see `keyText`. */
export function userKey(userId: string): string | undefined {
  return keyText([[USER, userId]]);
}

/** The names of the parts of a key, as rules write them, such as `ip/24/64` or `user`. */
export function partNamesIn(key: string): readonly string[] {
  if (key === GLOBAL_KEY) return [];
  return key.split(',').map((part) => decoded(part.slice(0, part.indexOf('='))));
}

/**
 * The descriptors that the parts of a key come from. A shortened value is returned in its short form. @param key not
 * `GLOBAL_KEY`
 */
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
