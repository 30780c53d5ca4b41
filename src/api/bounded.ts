/**
 * Checks that a value from outside is text or an integer within bounds. Text may become part of replicated state, so
 * it must survive encoding to UTF-8 and back unchanged.
 */

/**
 * Matches a surrogate without its partner. Such a string has no UTF-8 form: it would come back from a log entry or a
 * snapshot as a different string, and the replicas would diverge.
 */
const LONE_SURROGATE = /\p{Surrogate}/u;
/**
 * A byte order mark (BOM). Some UTF-8 decoders drop it at the start of a string, so the string would come back
 * shorter.
 */
const BYTE_ORDER_MARK = 0xfeff;

/** The number of bytes of `text` in UTF-8. A lone surrogate counts as 3 bytes. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit <= 0xdbff && i + 1 < text.length) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next <= 0xdfff) {
        bytes += 2;
        i += 1;
        continue;
      }
    }
    if (unit >= 0x800) bytes += 2;
    else if (unit >= 0x80) bytes += 1;
  }
  return bytes;
}

/** True if `value` is a string of 1 to `maxBytes` UTF-8 bytes that survives encoding to UTF-8 and back unchanged. */
export function isBoundedText(value: unknown, maxBytes: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > maxBytes) return false;
  if (value.length * 3 > maxBytes && utf8Length(value) > maxBytes) return false;
  return value.charCodeAt(0) !== BYTE_ORDER_MARK && !LONE_SURROGATE.test(value);
}

/** True if `value` is an integer from `min` to `max`, both included. */
export function isBoundedInteger(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
}
