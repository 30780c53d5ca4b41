/**
 * Who may change the cluster while it is open, and nobody shows a token: programs on the node's own machine, for themselves,
 * and there neither a browser nor a proxy.
 */
import type { IncomingHttpHeaders } from 'node:http';
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

/** Does a program on this machine ask, for itself? A node that listens on one address only is not found on loopback. */
export function isLocal({ remoteAddress = '', localAddress }: Ends, headers: IncomingHttpHeaders): boolean {
  const isLoopback = remoteAddress === '::1' || /^(::ffff:)?127\./.test(remoteAddress);
  const isOwn = isLoopback || remoteAddress === localAddress;
  return isOwn && FOREIGN_HEADERS.every((name) => headers[name] === undefined);
}
