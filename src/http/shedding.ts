/**
 * Refuses requests that the node cannot take now (load shedding), before their bodies are read. The responses are
 * prebuilt bytes, because an overloaded listener spends most of its time on refusals. The node decides which requests
 * are refused.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ALLOW } from './allow-route.ts';
import { ALLOW_BATCH } from './batch-route.ts';
import { FORWARD_AUTH } from './forward-auth-route.ts';
import { RLS_JSON, shedInText, type Written } from './rls-route.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import { REFUNDS as DESCRIBED_REFUNDS } from './refunds-route.ts';
import { KEY, REFUNDS, USER } from './users-route.ts';

/**
 * The routes that ask for grants. Refusals on these routes are counted, even if the request never reached its route.
 */
export const GRANT_ROUTES: ReadonlySet<string | undefined> = new Set([
  ALLOW,
  ALLOW_BATCH,
  FORWARD_AUTH,
  RLS_JSON,
]);

/** The routes that services use. The routes of operators and monitoring are never refused because of load. */
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
  const withLength = { ...headers, 'content-length': String(body.length) };
  return { status, body, headers: withLength, lastHeaders: { ...withLength, connection: 'close' } };
}

/**
 * Returns true if this request is refused because of load. It is then answered, and the caller must not touch it any
 * more.
 */
export function maybeShed(request: FastifyRequest, reply: FastifyReply, init: HttpListenerInit): boolean {
  const { url } = request.routeOptions;
  if (!SHED_ROUTES.has(url) || !init.node.shedding.refuses(clientOf(request))) return false;
  reply.hijack();
  shed(reply.raw, url, init);
  return true;
}

/** Sends the refusal of a request for this route, and counts it. */
export function shed(
  response: ServerResponse,
  url: string | undefined,
  { node, observe, monotonicMillis }: HttpListenerInit,
): void {
  const { status, body, headers, lastHeaders } = url === RLS_JSON ? REFUSAL_IN_TEXT : REFUSAL;
  response.writeHead(status, node.wantsNoClients() ? lastHeaders : headers);
  response.end(body);
  if (!GRANT_ROUTES.has(url)) return;
  node.refusedUnread(1);
  observe(status, monotonicMillis());
}
