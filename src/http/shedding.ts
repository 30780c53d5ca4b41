/**
 * Refuses requests that the node cannot take now, before their bodies are read: with bytes made once, as most of the work of a
 * door under too much load is refusing. Which are refused is not decided here.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpDoorInit } from './door-init.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import { GRANT_ROUTES } from './grant-routes.ts';
import { REFUNDS as DESCRIBED_REFUNDS } from './refunds-route.ts';
import { REFUNDS, USER } from './users-route.ts';

/** What users' services ask for. Operators, and whoever looks how things are, are never refused for load. */
const SHED_ROUTES: ReadonlySet<string | undefined> = new Set([
  ...GRANT_ROUTES,
  DESCRIBED_REFUNDS,
  REFUNDS,
  USER,
]);

const SHED = formatAnswer({ kind: 'unavailable', reason: 'overloaded', proposed: false }, 0);
const BODY = Buffer.from(JSON.stringify(SHED.body));
const HEADERS = { ...SHED.headers, 'content-length': String(BODY.length) };
const LAST_HEADERS = { ...HEADERS, connection: 'close' };

/** Answers and says true if this request is refused for load; nothing more may be done with it then. */
export function maybeShed(
  request: FastifyRequest,
  reply: FastifyReply,
  { node, observe, monotonicMillis }: HttpDoorInit,
): boolean {
  const { url } = request.routeOptions;
  if (!SHED_ROUTES.has(url) || !node.shedding.refuses(clientOf(request))) return false;
  reply.hijack();
  reply.raw.writeHead(SHED.status, node.wantsNoClients() ? LAST_HEADERS : HEADERS);
  reply.raw.end(BODY);
  if (GRANT_ROUTES.has(url)) {
    node.refusedUnread(1);
    observe(SHED.status, monotonicMillis());
  }
  return true;
}
