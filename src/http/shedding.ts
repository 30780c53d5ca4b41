/**
 * Refuses requests that the node cannot take now, before their bodies are read: with bytes made once, as most of the work of a
 * door under too much load is refusing. Which are refused is not decided here.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpDoorInit } from './door-init.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import { GRANT_ROUTES } from './grant-routes.ts';
import { REFUNDS as DESCRIBED_REFUNDS } from './refunds-route.ts';
import { RLS_JSON, shedInText, type Written } from './rls-route.ts';
import { KEY, REFUNDS, USER } from './users-route.ts';

/** What users' services ask for. Operators, and whoever looks how things are, are never refused for load. */
const SHED_ROUTES: ReadonlySet<string | undefined> = new Set([
  ...GRANT_ROUTES,
  DESCRIBED_REFUNDS,
  REFUNDS,
  USER,
  KEY,
]);

interface Refusal {
  readonly status: number;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly lastHeaders: Readonly<Record<string, string>>;
}

const SHED = formatAnswer({ kind: 'unavailable', reason: 'overloaded', proposed: false }, 0);
const REFUSAL = refusalOf({ ...SHED, text: JSON.stringify(SHED.body) });
const REFUSAL_IN_TEXT = refusalOf(shedInText());

function refusalOf({ status, headers, text }: Written): Refusal {
  const body = Buffer.from(text);
  const told = { ...headers, 'content-length': String(body.length) };
  return { status, body, headers: told, lastHeaders: { ...told, connection: 'close' } };
}

/** Answers and says true if this request is refused for load; nothing more may be done with it then. */
export function maybeShed(request: FastifyRequest, reply: FastifyReply, init: HttpDoorInit): boolean {
  const { url } = request.routeOptions;
  if (!SHED_ROUTES.has(url) || !init.node.shedding.refuses(clientOf(request))) return false;
  reply.hijack();
  shed(reply.raw, url, init);
  return true;
}

/** Answers that a request for this route is refused for load. */
export function shed(
  response: ServerResponse,
  url: string | undefined,
  { node, observe, monotonicMillis }: HttpDoorInit,
): void {
  const { status, body, headers, lastHeaders } = url === RLS_JSON ? REFUSAL_IN_TEXT : REFUSAL;
  response.writeHead(status, node.wantsNoClients() ? lastHeaders : headers);
  response.end(body);
  if (!GRANT_ROUTES.has(url)) return;
  node.refusedUnread(1);
  observe(status, monotonicMillis());
}
