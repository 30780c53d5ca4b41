/**
 * `POST /v1/tokens`, `GET /v1/tokens`, `DELETE /v1/tokens/{id}`: create, list and revoke tokens. The routes parse and
 * format; group 0 decides. Only the answer that creates a token contains its secret.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TOKEN_ID, validateTokenAsked } from '../api/token.ts';
import { type AskedChange, changeCluster, formatRefused } from './change-answer.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const TOKENS = '/v1/tokens';
/** The path of the route, in Fastify's notation. */
export const ONE_TOKEN = '/v1/tokens/:tokenId';
const FORBIDDEN = forbidden(
  'while the cluster is open, only programs on the machine of this node may read and change tokens, not a browser or proxy',
);
const UNKNOWN_TOKEN = formatRefused({ ok: false, reason: 'unknownToken' });
/** `no-store`, because a cache must not keep a secret. */
const HEADERS = { 'content-type': JSON_TYPE, 'cache-control': 'no-store' };

/**
 * Parses `{"role": "decide" | "read" | "admin", "name": string}`. @throws InvalidFieldError naming the field and its
 * bound
 */
function createAsked({ body }: FastifyRequest): AskedChange {
  const create = validateTokenAsked(fieldsOf(body, ['role', 'name'], 'role and name'));
  return {
    change: { type: 'tokens', change: { create } },
    action: 'tokens.create',
    details: { ...create },
    made: ({ made, pending }) => ({
      status: 201,
      headers: HEADERS,
      body: { ...made?.info, token: made?.token, pending },
    }),
  };
}

/** True with `?open=true`: the last admin token may be revoked, which opens the cluster. @throws InvalidBodyError */
function parseCanOpen(url: string): boolean {
  const begin = url.indexOf('?');
  const query = begin === -1 ? '' : url.slice(begin + 1);
  if (query !== '' && query !== 'open=true')
    throw new InvalidBodyError('query', 'query must be open=true, or absent');
  return query !== '';
}

/**
 * The change that revokes a token. It is answered with 202 if the nodes in `pending` do not know it yet and may still
 * accept the token.
 */
function revokeAsked({ params, url }: OfToken): AskedChange {
  const { tokenId: id } = params;
  return {
    change: { type: 'tokens', change: { revoke: id, canOpen: parseCanOpen(url) } },
    action: 'tokens.revoke',
    details: { token: id },
    made: ({ pending }) => ({ headers: HEADERS, body: { id, pending } }),
  };
}

type OfToken = FastifyRequest<{ Params: { tokenId: string } }>;

/** Adds the routes. */
export function addTokensRoutes(app: FastifyInstance, init: HttpListenerInit): void {
  const { node } = init;
  app.get(TOKENS, (request, reply) => {
    if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
    const tokens = node.access
      .tokens()
      .map(({ isConfigured, ...token }) => ({ ...token, ...(isConfigured && { configured: true }) }));
    sendAnswer(reply, { status: 200, headers: HEADERS, body: { tokens } });
    return reply;
  });
  app.post(TOKENS, (request, reply) =>
    changeCluster(init, { request, reply, forbidding: FORBIDDEN }, () => createAsked(request)),
  );
  app.delete(ONE_TOKEN, (request: OfToken, reply) => {
    if (TOKEN_ID.test(request.params.tokenId))
      return changeCluster(init, { request, reply, forbidding: FORBIDDEN }, () => revokeAsked(request));
    if (!maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) sendAnswer(reply, UNKNOWN_TOKEN);
    return reply;
  });
}
