/**
 * `POST /v1/tokens`, `GET /v1/tokens`, `DELETE /v1/tokens/{id}`: who may ask what. It parses and formats; group 0 decides. The
 * answer that creates a token is the only one that ever holds it.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TOKEN_ID, validateTokenAsked } from '../api/token.ts';
import { type AskedChange, changeCluster, formatRefused } from './change-answer.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const TOKENS = '/v1/tokens';
/** As the router of the server has it. */
export const ONE_TOKEN = '/v1/tokens/:tokenId';
const FORBIDDEN = forbidden(
  'while the cluster is open, tokens are told and changed on the machine of the node that is asked, to no browser or proxy',
);
const UNKNOWN_TOKEN = formatRefused({ ok: false, reason: 'unknownToken' });
/** A secret must be in no cache. */
const HEADERS = { 'content-type': JSON_TYPE, 'cache-control': 'no-store' };

/** `{"role": "decide" | "read" | "admin", "name": string}`. @throws InvalidFieldError naming the field and its bound */
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

/** Whether `?open=true` says that the last token of role admin may go. @throws InvalidBodyError */
function parseCanOpen(url: string): boolean {
  const begin = url.indexOf('?');
  const query = begin === -1 ? '' : url.slice(begin + 1);
  if (query !== '' && query !== 'open=true')
    throw new InvalidBodyError('query', 'query must be open=true, or nothing at all');
  return query !== '';
}

/** 202: those in `pending` may take it until they hear of it. */
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

export function addTokensRoutes(app: FastifyInstance, init: HttpDoorInit): void {
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
