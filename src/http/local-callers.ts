/**
 * While the cluster is open, and nobody shows a token: who may change it (programs on the node's own machine, for themselves,
 * and there neither a browser nor a proxy), and who may not even ask (pages of others, through a browser here).
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

export function forbidden(message: string): HttpAnswer {
  return {
    status: 403,
    headers: { 'content-type': JSON_TYPE },
    body: { error: { type: 'forbidden', message } },
  };
}

/**
 * Browsers send `Origin` with every POST, also to a name of the attacker's that leads to loopback all at once (DNS
 * rebinding). The other headers say that somebody else asks through a proxy here.
 */
const FOREIGN_HEADERS = ['origin', 'forwarded', 'via', 'x-forwarded-for', 'x-real-ip'] as const;

/** The two ends of a connection. */
export interface Ends {
  readonly remoteAddress?: string | undefined;
  readonly localAddress?: string | undefined;
}

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
/** What most programs here say: no name of anybody's page. */
const PLAIN_HOST = /^(?:127\.0\.0\.1|localhost)(?::\d*)?$/;
const LOCALHOST = /\.localhost\.?$/i;

/**
 * Does a page ask whose own name led to this machine (DNS rebinding)? A GET of it has no `Origin`, but the name it was
 * loaded by, and such a name has a dot. Programs here call loopback by its addresses, by a name without a dot, or by the one
 * that this door is configured with.
 *
 * @param host the header, perhaps with a port; empty without one
 * @param configured the host of this door's own address
 */
export function isRebound({ localAddress = '' }: Ends, host: string, configured: string): boolean {
  if (PLAIN_HOST.test(host) || !LOOPBACK.test(localAddress)) return false;
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  const isForeign = name.includes('.') && isIP(name) === 0 && !LOCALHOST.test(name);
  return isForeign && name.toLowerCase() !== configured.toLowerCase();
}

/** Does a program on this machine ask, for itself? A node that listens on one address only is not found on loopback. */
export function isLocal({ remoteAddress = '', localAddress }: Ends, headers: IncomingHttpHeaders): boolean {
  const isLoopback = LOOPBACK.test(remoteAddress);
  const isOwn = isLoopback || remoteAddress === localAddress;
  return isOwn && FOREIGN_HEADERS.every((name) => headers[name] === undefined);
}
