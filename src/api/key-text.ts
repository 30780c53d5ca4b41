/**
 * The key that a request is counted under by a rule, as text: each list of parts has one, no two lists have the same, and
 * none is longer than the limiter takes. What cannot be written so has no key.
 */
import { isBoundedText } from './bounded.ts';
import { USER } from './question.ts';
import { KEY_BYTES_MAX } from './request.ts';

/** The key of no parts: everything is counted together. No list of parts looks like it, for there is no `=`. */
export const GLOBAL_KEY = '*';

/** Where these stand in a name or a value, they would be taken for what separates parts, or a name from its value. */
const SEPARATING = /[%,]/g;
const SEPARATING_NAMES = /[%,=]/g;

/**
 * As `endpoint=/a,user=ada`. Undefined if it is longer than `KEY_BYTES_MAX` bytes, or would not survive a trip through
 * UTF-8.
 */
export function keyText(parts: readonly (readonly [name: string, value: string])[]): string | undefined {
  if (parts.length === 0) return GLOBAL_KEY;
  let text = '';
  for (const [name, value] of parts) {
    // Before more is made of it than could be used.
    if (text.length + name.length + value.length > KEY_BYTES_MAX) return undefined;
    if (text !== '') text += ',';
    text += `${escaped(name, SEPARATING_NAMES)}=${escaped(value, SEPARATING)}`;
  }
  return isBoundedText(text, KEY_BYTES_MAX) ? text : undefined;
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

function decoded(text: string): string {
  return text.replace(/%(25|2c|3d)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
