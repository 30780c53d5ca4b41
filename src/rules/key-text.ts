/**
 * The key that a request is counted under by a rule, as text: each list of parts has one, no two lists have the same, and
 * none is longer than the limiter takes. What cannot be written so has no key.
 */
import { isBoundedText } from '../api/bounded.ts';
import { KEY_BYTES_MAX } from '../api/request.ts';

/** The key of no parts: everything is counted together. No list of parts looks like it, for there is no `=`. */
export const GLOBAL_KEY = '*';

/** Where this stands in a name or a value, it would be taken for what separates them. */
const SEPARATING = /[%&=]/g;

/**
 * As `endpoint=/a&user=ada`. Undefined if it is longer than `KEY_BYTES_MAX` bytes, or would not survive a trip through
 * UTF-8.
 */
export function keyText(parts: readonly (readonly [name: string, value: string])[]): string | undefined {
  if (parts.length === 0) return GLOBAL_KEY;
  let text = '';
  for (const [name, value] of parts) {
    // Before more is made of it than could be used.
    if (text.length + name.length + value.length > KEY_BYTES_MAX) return undefined;
    if (text !== '') text += '&';
    text += `${escaped(name)}=${escaped(value)}`;
  }
  return isBoundedText(text, KEY_BYTES_MAX) ? text : undefined;
}

function escaped(text: string): string {
  return text.replace(SEPARATING, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
