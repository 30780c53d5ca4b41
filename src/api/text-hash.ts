export const FNV_OFFSET_BASIS = 0x811c9dc5;

/**
 * FNV-1a of 32 bits (Fowler, Noll and Vo; RFC 9923) over the UTF-16 units of `text`, each taken in as one: so of plain ASCII the
 * value is that of its bytes. A signed number. It finds equal texts, and stops nobody who looks for two that meet.
 */
export function fnv1a(text: string, basis = FNV_OFFSET_BASIS): number {
  let value = basis;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}

/** How long a `textDigest` is. */
export const DIGEST_DIGITS = 16;
const OTHER_BASIS = 0x2545f491;

/** A digest of a long text, in hex. By chance two texts practically never have the same; on purpose such a pair is easy to make. */
export function textDigest(text: string): string {
  return mixed(fnv1a(text, FNV_OFFSET_BASIS)) + mixed(fnv1a(text, OTHER_BASIS));
}

function mixed(hash: number): string {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0).toString(16).padStart(8, '0');
}
