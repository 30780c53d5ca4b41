/**
 * Where the client of a gateway is: the address that the last gateway saw which is not one of ours. What comes from anybody else
 * than a trusted gateway is not believed, and nothing is guessed.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { withoutPort } from '../api/node-address.ts';
import { InvalidBodyError } from './json-body.ts';

const FORWARDED_FOR = 'x-forwarded-for';
const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
const IPV6_GROUPS = 8;
/** What one customer of a network has: with more of them, one client would have many budgets. */
const NETWORK_GROUPS = 4;

export type IsTrusted = (address: string) => boolean;

/** @param proxies addresses and networks, as `validateHttpSettings` has checked them */
export function trusting(proxies: readonly string[]): IsTrusted {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [network = '', bits] = proxy.split('/');
    const family = isIP(network) === 4 ? 'ipv4' : 'ipv6';
    list.addSubnet(network, Number(bits ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  return (address) => list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

/**
 * @returns undefined if whoever asks is no trusted gateway, or does not say where its client is
 * @throws InvalidBodyError naming the header, if what it says is no address
 */
export function clientAddressOf(
  { rawHeaders, socket }: Pick<IncomingMessage, 'rawHeaders' | 'socket'>,
  isTrusted: IsTrusted,
): string | undefined {
  const asker = canonicalAddress(socket.remoteAddress?.replace(/%.*$/, '') ?? '');
  if (asker === undefined || !isTrusted(asker)) return undefined;
  const values = rawHeaders.filter(
    (_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === FORWARDED_FOR,
  );
  if (values.length === 0) return undefined;
  const hops = values.join(',').split(',');
  let address: string | undefined;
  // From the right: what stands before the first that is not ours was said by the client, and may be anything.
  for (const hop of hops.toReversed()) {
    address = canonicalAddress(withoutPort(hop.trim()));
    if (address === undefined)
      throw new InvalidBodyError(FORWARDED_FOR, `${FORWARDED_FOR} must be a list of addresses`);
    if (!isTrusted(address)) break;
  }
  return address;
}

/** One text for all ways to write an address; undefined if it is none. */
function canonicalAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  if (family === 0 || text.includes('%')) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  return MAPPED.exec(address)?.[1] ?? address;
}

/** The key of a client that is known by nothing but its address: of IPv6 the first 64 bits. */
export function keyOfAddress(address: string): string {
  if (isIP(address) === 4) return `ip=${address}`;
  const [head = '', tail] = address.split('::');
  const before = head.split(':').filter((group) => group !== '');
  const after = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: Math.max(0, IPV6_GROUPS - before.length - after.length) }, () => '0');
  return `ip=${[...before, ...zeros, ...after].slice(0, NETWORK_GROUPS).join(':')}::/64`;
}
