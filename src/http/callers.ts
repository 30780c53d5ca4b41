/**
 * Authenticates callers: reads the token of a request, and refuses requests that may not use their route. While the
 * cluster is open, everybody may ask, and only programs on the node's own machine may change something. Tokens are
 * never shown.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NodeApi } from '../api/api-listener.ts';
import type { Caller, Role } from '../api/token.ts';
import { formatAnswer } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { forbidden, isLocal, isRebound } from './local-callers.ts';
import { rolesOf } from './route-roles.ts';

const BEARER = /^Bearer +(\S+) *$/i;
/** A header for gateways that forward the `Authorization` of their own clients and so cannot put a token there. */
const TOKEN_HEADER = 'x-quorate-token';
/** The most wrong tokens on one connection; then it is closed. */
export const FAILURES_MAX = 10;

/** The one answer for a missing, wrong or revoked token. */
const UNAUTHENTICATED: HttpAnswer = {
  status: 401,
  headers: { 'content-type': JSON_TYPE, 'www-authenticate': 'Bearer' },
  body: {
    allowed: false,
    error: { type: 'unauthenticated', message: 'send a valid token: authorization: Bearer qt_...' },
  },
};
/**
 * The answer while this node does not know which tokens are valid. It is the same on every route, because the request
 * is not read.
 */
const UNKNOWN = formatAnswer({ kind: 'unavailable', reason: 'starting', proposed: false }, 0);

/** Misdirected Request (RFC 9110, 15.5.20): the host name in the request is not a name of this node. */
const MISDIRECTED: HttpAnswer = {
  status: 421,
  headers: { 'content-type': JSON_TYPE },
  body: {
    allowed: false,
    error: {
      type: 'misdirected',
      message:
        'use an IP address or localhost: this open node answers programs on its machine, not web pages',
    },
  },
};

/** The part of a request that is read here; both Fastify's and Node's requests have it. */
interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly socket: Socket;
}

/** The authenticated caller of each request. */
const callers = new WeakMap<object, Caller>();
const failures = new WeakMap<Socket, number>();

/** The refusal of a request, before its body is read. Undefined if it may go on. */
export function refusalOfCaller(
  request: FastifyRequest,
  reply: FastifyReply,
  init: Pick<HttpListenerInit, 'node' | 'address' | 'advertisedHost'>,
): HttpAnswer | undefined {
  const { access } = init.node;
  const mode = access.mode();
  const known = init.advertisedHost ?? init.address.host;
  if (mode === 'open')
    return isRebound(request.socket, request.headers.host ?? '', known) ? MISDIRECTED : undefined;
  const roles = rolesOf(request.method, request.routeOptions.url);
  if (roles === 'anybody') return undefined;
  if (mode === 'unknown') return UNKNOWN;
  const token = shownToken(request);
  const caller = token === undefined ? undefined : access.callerOf(token);
  if (caller === undefined) {
    // A request without a token is not counted as a failure: its client may not know that one is needed.
    if (token !== undefined) failedOnce(request, reply, () => access.failed('http'));
    return UNAUTHENTICATED;
  }
  callers.set(request, caller);
  return roles.includes(caller.role) ? undefined : tooLow(caller.role, roles);
}

/** True if `refusalOfCaller` would not refuse the request. A wrong token is not counted here. */
export function isAdmitted(
  request: Asked,
  { method, url }: { readonly method: string; readonly url: string },
  { node: { access }, address, advertisedHost = address.host }: Parameters<typeof refusalOfCaller>[2],
): boolean {
  const mode = access.mode();
  if (mode === 'open') return !isRebound(request.socket, request.headers.host ?? '', advertisedHost);
  const token = mode === 'unknown' ? undefined : shownToken(request);
  const caller = token === undefined ? undefined : access.callerOf(token);
  const roles = rolesOf(method, url);
  if (caller === undefined || roles === 'anybody' || !roles.includes(caller.role)) return false;
  callers.set(request, caller);
  return true;
}

/** The token of a request. The gateway's own header takes precedence over what its client sent. */
function shownToken({ headers }: Asked): string | undefined {
  const own = headers[TOKEN_HEADER];
  if (typeof own === 'string') return own.trim();
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/**
 * The response if the role of a token is too low. A blocked key is also 403. This challenge (RFC 6750, 3.1) says
 * that the token is the reason, also to clients that do not read the body.
 */
function tooLow(role: Role, roles: readonly Role[]): HttpAnswer {
  const { status, headers, body } = forbidden(
    `this needs a token of role ${roles.join(' or ')}, and this one has ${role}`,
  );
  return {
    status,
    headers: { ...headers, 'www-authenticate': 'Bearer error="insufficient_scope"' },
    body: { allowed: false, ...(body as Record<string, unknown>) },
  };
}

function failedOnce({ socket }: FastifyRequest, reply: FastifyReply, count: () => void): void {
  count();
  const times = (failures.get(socket) ?? 0) + 1;
  failures.set(socket, times);
  if (times >= FAILURES_MAX) void reply.header('connection', 'close');
}

/** The caller of a request; undefined while the cluster is open. */
export function callerOf(request: Asked): Caller | undefined {
  return callers.get(request);
}

/** The client that a request is counted under for load shedding: the id of its token, or its address. */
export function clientOf(request: Asked): string {
  return callerOf(request)?.id ?? request.socket.remoteAddress ?? '?';
}

/**
 * True if this caller may change something: it has a token of a suitable role, or it is a program on this machine
 * while the cluster is open.
 */
export function mayChange(request: FastifyRequest, { access }: NodeApi): boolean {
  // The cluster may have been closed while the body arrived.
  return (
    callerOf(request) !== undefined || (access.mode() === 'open' && isLocal(request.socket, request.headers))
  );
}

/** Answers `forbidding` and returns true, unless the caller may change something. */
export function maybeForbidden(
  request: FastifyRequest,
  reply: FastifyReply,
  { node, forbidding }: { readonly node: NodeApi; readonly forbidding: HttpAnswer },
): boolean {
  if (mayChange(request, node)) return false;
  sendAnswer(reply, forbidding);
  return true;
}
