/**
 * Access checks while the cluster is open and callers have no tokens. Only programs on the node's own machine may
 * change the cluster, not a browser or proxy. Web pages that reach the node through a browser on its machine may not
 * even read.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

/** A 403 response. */
export function forbidden(message: string): HttpAnswer {
  return {
    status: 403,
    headers: { 'content-type': JSON_TYPE },
    body: { error: { type: 'forbidden', message } },
  };
}

/**
 * Headers that show that the request does not come from a program on this machine for itself. Browsers send `Origin`
 * with every POST, even to a host name that an attacker lets point to loopback (DNS rebinding). The other headers are
 * set by proxies.
 */
const FOREIGN_HEADERS = ['origin', 'forwarded', 'via', 'x-forwarded-for', 'x-real-ip'] as const;

/** The addresses of both ends of a connection. */
export interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** The host names that most programs use; checked first because it is fast. */
const PLAIN_HOST = /^(?:127\.0\.0\.1|localhost)(?::\d*)?$/;
const LOCALHOST = /\.localhost\.?$/i;

/**
 * True if a web page asks whose own host name points to this machine (DNS rebinding). A GET of such a page has no
 * `Origin`, but it has the host name of the page, and such a name contains a dot. Programs on this machine use a
 * loopback address, a name without a dot, or the configured name of this listener.
 *
 * @param host the `Host` header, possibly with a port; empty if there is none
 * @param configured the host of this listener's own address
 */
export function isRebound({ localAddress = '' }: Ends, host: string, configured: string): boolean {
  if (PLAIN_HOST.test(host) || !LOOPBACK.test(localAddress)) return false;
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  const isForeign = name.includes('.') && isIP(name) === 0 && !LOCALHOST.test(name);
  return isForeign && name.toLowerCase() !== configured.toLowerCase();
}

/**
 * True if a program on this machine asks for itself. If the node listens on only one address, such a program connects
 * from that same address instead of loopback.
 */
export function isLocal({ remoteAddress = '', localAddress }: Ends, headers: IncomingHttpHeaders): boolean {
  const isLoopback = LOOPBACK.test(remoteAddress);
  const isOwn = isLoopback || remoteAddress === localAddress;
  return isOwn && FOREIGN_HEADERS.every((name) => headers[name] === undefined);
}
