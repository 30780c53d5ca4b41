/**
 * Finds the address of a gateway's client in `X-Forwarded-For`: the last address that is not a trusted proxy. The
 * header is ignored unless a trusted gateway sent it.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { withoutPort } from '../api/node-address.ts';
import { InvalidBodyError } from './json-body.ts';

const FORWARDED_FOR = 'x-forwarded-for';
const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;
const IPV6_GROUPS = 8;
/**
 * The network of one customer: the first 4 groups (64 bits). With longer prefixes one client would have many budgets.
 */
const NETWORK_GROUPS = 4;

/** True if an address belongs to a trusted proxy. */
export type IsTrusted = (address: string) => boolean;

/** Builds the check. @param proxies addresses and networks, checked by `validateHttpSettings` */
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
 * The address of the client of the gateway that sent this request.
 *
 * @returns undefined if the sender is not a trusted gateway, or sent no `X-Forwarded-For`
 * @throws InvalidBodyError naming the header, if it contains something that is no address
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
  // From right to left: everything before the first address that is not trusted was written by the client, and may be
  // false.
  for (const hop of hops.toReversed()) {
    address = canonicalAddress(withoutPort(hop.trim()));
    if (address === undefined)
      throw new InvalidBodyError(FORWARDED_FOR, `${FORWARDED_FOR} must be a list of addresses`);
    if (!isTrusted(address)) break;
  }
  return address;
}

/** The one canonical text of an address; undefined if the text is none. */
function canonicalAddress(text: string): string | undefined {
  const family = isIP(text);
  if (family === 4) return text;
  if (family === 0 || text.includes('%')) return undefined;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  return MAPPED.exec(address)?.[1] ?? address;
}

/** The key of a client that is only known by its address: `ip=` and the address; for IPv6 the first 64 bits of it. */
export function keyOfAddress(address: string): string {
  if (isIP(address) === 4) return `ip=${address}`;
  const [head = '', tail] = address.split('::');
  const before = head.split(':').filter((group) => group !== '');
  const after = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: Math.max(0, IPV6_GROUPS - before.length - after.length) }, () => '0');
  return `ip=${[...before, ...zeros, ...after].slice(0, NETWORK_GROUPS).join(':')}::/64`;
}
