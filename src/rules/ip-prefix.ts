/** Turns addresses into keys: one text for all spellings of an address, or for its leading bits. */
import { IPV4_BITS, IPV6_BITS } from './rule-definition.ts';

/**
 * The key of everything that is not an address. There is one budget for all of it, so that nobody gets a new budget by
 * sending garbage.
 */
export const NO_ADDRESS = 'none';
/** Length of the longest address text (IPv6 with an IPv4 address at its end). */
const LENGTH_MAX = 45;
const GROUP_BITS = 16;
const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[\da-fA-F]{1,4}$/;

/**
 * The leading bits of an address as text, such as `10.1.0.0` or `2001:db8:0:1::`. Addresses with the same leading
 * bits give the same text.
 */
export function networkOf(address: string, bits: { readonly ipv4: number; readonly ipv6: number }): string {
  if (address.length > LENGTH_MAX) return NO_ADDRESS;
  const octets = octetsOf(address);
  if (octets !== undefined) return masked(octets, 8, bits.ipv4).join('.');
  const groups = groupsOf(address);
  if (groups === undefined) return NO_ADDRESS;
  const [, , , , , mark, high = 0, low = 0] = groups;
  // An IPv4-mapped IPv6 address (::ffff:a.b.c.d), as dual-stack sockets report IPv4 peers.
  if (mark === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return masked([high >> 8, high & 0xff, low >> 8, low & 0xff], 8, bits.ipv4).join('.');
  }
  const kept = masked(groups, GROUP_BITS, bits.ipv6).slice(0, Math.ceil(bits.ipv6 / GROUP_BITS));
  return `${kept.map((group) => group.toString(16)).join(':')}${kept.length < 8 ? '::' : ''}`;
}

/**
 * The number of bits for each kind of address in a key part such as `ip/24`, `ip/64` or `ip/24/64`. Undefined if
 * the part is not of this form.
 */
export function ipBits(part: string): { readonly ipv4: number; readonly ipv6: number } | undefined {
  const [, first, second] = /^ip(?:\/(\d{1,3}))?(?:\/(\d{1,3}))?$/.exec(part) ?? [undefined, ''];
  if (first === '') return undefined;
  if (first === undefined) return { ipv4: IPV4_BITS, ipv6: IPV6_BITS };
  const isIpv4 = second !== undefined || Number(first) <= IPV4_BITS;
  // A /64 is what one customer of a network gets; with more bits one customer would have many budgets.
  const bits = isIpv4
    ? { ipv4: Number(first), ipv6: Number(second ?? 64) }
    : { ipv4: IPV4_BITS, ipv6: Number(first) };
  const isBounded = bits.ipv4 >= 1 && bits.ipv4 <= IPV4_BITS && bits.ipv6 >= 1 && bits.ipv6 <= IPV6_BITS;
  return isBounded ? bits : undefined;
}

function octetsOf(text: string): number[] | undefined {
  const parts = text.split('.');
  const isAddress = parts.length === 4 && parts.every((part) => OCTET.test(part) && Number(part) <= 0xff);
  return isAddress ? parts.map(Number) : undefined;
}

/** The eight 16-bit groups of an IPv6 address. */
function groupsOf(text: string): number[] | undefined {
  const [head = '', tail, more] = text.split('::');
  if (more !== undefined) return undefined;
  const before = groupsBetweenColons(head, tail === undefined);
  const after = groupsBetweenColons(tail ?? '', true);
  if (before === undefined || after === undefined) return undefined;
  if (tail === undefined) return before.length === 8 ? before : undefined;
  const gap = 8 - before.length - after.length;
  return gap < 1 ? undefined : [...before, ...Array<number>(gap).fill(0), ...after];
}

/** @param isEnd the last part may be an IPv4 address */
function groupsBetweenColons(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    const octets = isEnd && i === parts.length - 1 ? octetsOf(part) : undefined;
    if (octets !== undefined) {
      const [a = 0, b = 0, c = 0, d = 0] = octets;
      groups.push((a << 8) | b, (c << 8) | d);
    } else if (GROUP.test(part)) groups.push(Number.parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

/** The leading bits of a row of numbers of `width` bits each. */
function masked(numbers: readonly number[], width: number, bits: number): number[] {
  return numbers.map((number, i) => {
    const kept = Math.max(0, Math.min(width, bits - i * width));
    return number & (((1 << kept) - 1) << (width - kept));
  });
}
