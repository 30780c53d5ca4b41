/**
 * Who asks: reads the token of a request, and refuses those that may not ask for its route. While the cluster is open
 * everybody may ask, and programs on the node's own machine may change things. It shows no token to anybody.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { NodeBehindDoor } from '../api/front-door.ts';
import type { Caller, Role } from '../api/token.ts';
import { formatAnswer } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import type { HttpDoorInit } from './door-init.ts';
import { forbidden, isLocal, isRebound } from './local-callers.ts';
import { rolesOf } from './route-roles.ts';

const BEARER = /^Bearer +(\S+) *$/i;
/** For gateways that pass `Authorization` of their own clients on, and cannot put a token there. */
const TOKEN_HEADER = 'x-quorate-token';
/** Wrong tokens on one connection; after as many it is closed. */
export const FAILURES_MAX = 10;

/** One answer for a token that is missing, wrong or revoked. */
const UNAUTHENTICATED: HttpAnswer = {
  status: 401,
  headers: { 'content-type': JSON_TYPE, 'www-authenticate': 'Bearer' },
  body: {
    allowed: false,
    error: { type: 'unauthenticated', message: 'show a valid token: authorization: Bearer qt_...' },
  },
};
/** This node does not know yet which tokens are valid. Of every route the same, as what it asks for is not read. */
const UNKNOWN = formatAnswer({ kind: 'unavailable', reason: 'starting', proposed: false }, 0);

/** Misdirected (RFC 9110, 15.5.20): no name that leads here is this node's. */
const MISDIRECTED: HttpAnswer = {
  status: 421,
  headers: { 'content-type': JSON_TYPE },
  body: {
    allowed: false,
    error: {
      type: 'misdirected',
      message:
        'ask by an address or as localhost: this node is open to programs on its machine, not to pages',
    },
  },
};

/** What is read of a request here, Fastify's or Node's own. */
interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly socket: Socket;
}

/** By request, for as long as somebody holds it. */
const callers = new WeakMap<object, Caller>();
const failures = new WeakMap<Socket, number>();

/** Why this request is refused, before anything of its body is read; undefined: it may go on. */
export function refusalOfCaller(
  request: FastifyRequest,
  reply: FastifyReply,
  init: Pick<HttpDoorInit, 'node' | 'address' | 'advertisedHost'>,
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
    // Who shows none may not know that one is needed.
    if (token !== undefined) failedOnce(request, reply, () => access.failed('http'));
    return UNAUTHENTICATED;
  }
  callers.set(request, caller);
  return roles.includes(caller.role) ? undefined : tooLow(caller.role, roles);
}

/** `refusalOfCaller` would say nothing of it. Who shows a wrong token is not counted. */
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

/** A gateway's own word goes before what its client says. */
function shownToken({ headers }: Asked): string | undefined {
  const own = headers[TOKEN_HEADER];
  if (typeof own === 'string') return own.trim();
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** A blocked key is 403, too: the challenge (RFC 6750, 3.1) tells who reads no body that the token is the reason. */
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

/** Whose token was shown; undefined while the cluster is open. */
export function callerOf(request: Asked): Caller | undefined {
  return callers.get(request);
}

/** Whose requests are counted together: those of its token, or of where it comes from. */
export function clientOf(request: Asked): string {
  return callerOf(request)?.id ?? request.socket.remoteAddress ?? '?';
}

/** May this caller change something? With a token of the role for it, or, while the cluster is open, on this machine. */
export function mayChange(request: FastifyRequest, { access }: NodeBehindDoor): boolean {
  // The cluster may have been closed while the body arrived.
  return (
    callerOf(request) !== undefined || (access.mode() === 'open' && isLocal(request.socket, request.headers))
  );
}

/** Answers `forbidding` and says false unless the caller may change something. */
export function maybeForbidden(
  request: FastifyRequest,
  reply: FastifyReply,
  { node, forbidding }: { readonly node: NodeBehindDoor; readonly forbidding: HttpAnswer },
): boolean {
  if (mayChange(request, node)) return false;
  sendAnswer(reply, forbidding);
  return true;
}
