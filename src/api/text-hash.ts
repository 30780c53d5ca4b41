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
