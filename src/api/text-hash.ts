/** The start value of FNV-1a with 32 bits (RFC 9923). */
export const FNV_OFFSET_BASIS = 0x811c9dc5;

/**
 * The 32-bit FNV-1a hash (Fowler, Noll and Vo; RFC 9923) of `text`, as a signed number. It hashes UTF-16 units, so
 * for ASCII text it equals the hash of the bytes. It is not cryptographic: collisions are easy to construct.
 */
export function fnv1a(text: string, basis = FNV_OFFSET_BASIS): number {
  let value = basis;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}

/** The length of a `textDigest` in hex digits. */
export const DIGEST_DIGITS = 16;
const OTHER_BASIS = 0x2545f491;

/**
 * A 64-bit digest of a long text, in hex. Accidental collisions practically never happen; deliberate ones are easy to
 * construct.
 */
export function textDigest(text: string): string {
  return mixed(fnv1a(text, FNV_OFFSET_BASIS)) + mixed(fnv1a(text, OTHER_BASIS));
}

function mixed(hash: number): string {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0).toString(16).padStart(8, '0');
}
