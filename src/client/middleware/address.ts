/**
 * Finds the address of a client behind trusted proxies. Headers from untrusted peers are ignored: otherwise a client
 * could invent addresses, and get a new budget with each.
 */
import { BlockList, isIP, isIPv4 } from 'node:net';
import { withoutPort } from '../../api/node-address.ts';
import { InvalidOptionError } from '../errors.ts';
import type { RequestFacts } from './facts.ts';

/** Options of `clientAddress`. */
export interface AddressOptions {
  /**
   * Proxies whose `X-Forwarded-For` header is believed: addresses, prefixes (`10.0.0.0/8`), `loopback`, or `private`
   * (the networks of RFC 1918 and RFC 4193). Default: none, and the header is not read.
   */
  readonly trustedProxies?: readonly string[];
}

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
};
/** Longest chain of proxies to follow. */
const HOPS_MAX = 64;

/**
 * @returns a function that returns the first address from the right that is not a trusted proxy, or undefined if the
 *   connection has no address
 * @throws InvalidOptionError if an entry is not an address or a prefix
 */
export function clientAddress({ trustedProxies = [] }: AddressOptions = {}): (
  facts: RequestFacts,
) => string | undefined {
  const trusted = blockListOf(trustedProxies);
  return ({ peerAddress, header }) => {
    let address = plainAddress(peerAddress ?? '');
    if (address === undefined || trustedProxies.length === 0) return address;
    const said = (header('x-forwarded-for') ?? '').split(',').slice(-HOPS_MAX);
    for (const each of said.toReversed()) {
      if (!isIn(trusted, address)) break;
      const next = plainAddress(withoutPort(each.trim()));
      // A trusted proxy passed on something that is not an address, so the entries before it cannot be checked.
      if (next === undefined) break;
      address = next;
    }
    return address;
  };
}

/**
 * Returns the network of an IPv6 address, as its first `ipv6Bits` bits, because a client usually owns a whole network.
 * IPv4 addresses are returned unchanged.
 */
export function networkOf(address: string, ipv6Bits: number): string {
  if (isIPv4(address)) return address;
  const groups = ipv6Groups(address).map((group, i) => {
    const bits = Math.min(16, Math.max(0, ipv6Bits - 16 * i));
    return group & (0xffff << (16 - bits)) & 0xffff;
  });
  return `${groups.map((group) => group.toString(16)).join(':')}/${ipv6Bits}`;
}

function blockListOf(proxies: readonly string[]): BlockList {
  const list = new BlockList();
  for (const [i, each] of proxies.entries()) {
    for (const prefix of NAMED[each] ?? [each]) {
      const [address = '', bits] = prefix.split('/');
      const family = isIP(address);
      const longest = family === 4 ? 32 : 128;
      const length = bits === undefined ? longest : Number(bits);
      if (family === 0 || !/^\d{0,3}$/.test(bits ?? '') || bits === '' || length > longest)
        throw new InvalidOptionError(
          `trustedProxies[${i}]`,
          'must be an address, a prefix such as 10.0.0.0/8, loopback or private',
        );
      list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6');
    }
  }
  return list;
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}

/**
 * Returns the address without a zone, and an IPv4-mapped IPv6 address as IPv4. Undefined if the text is not an address.
 */
function plainAddress(text: string): string | undefined {
  const [address = ''] = text.split('%');
  const family = isIP(address);
  if (family === 0) return undefined;
  return family === 6 ? (mappedIn(ipv6Groups(address)) ?? address) : address;
}

/** Returns the IPv4 address inside of an IPv4-mapped IPv6 address, in any notation. */
function mappedIn([a, b, c, d, e, f, high = 0, low = 0]: readonly number[]): string | undefined {
  if ([a, b, c, d, e].some((group) => group !== 0) || f !== 0xffff) return undefined;
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** @param address an IPv6 address that `isIP` accepts */
function ipv6Groups(address: string): readonly number[] {
  const [head = '', tail] = address.split('::');
  const before = groupsOf(head);
  if (tail === undefined) return before;
  const after = groupsOf(tail);
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function groupsOf(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!isIPv4(group)) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
