/**
 * `POST /v1/tokens`, `GET /v1/tokens`, `DELETE /v1/tokens/{id}`: who may ask what. It parses and formats; group 0 decides. The
 * answer that creates a token is the only one that ever holds it.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import {
  TOKEN_FAILURES,
  TOKEN_ID,
  type TokenAsked,
  type TokenCreated,
  type TokenFailure,
  type TokenRevoked,
  validateTokenAsked,
} from '../api/token.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const TOKENS = '/v1/tokens';
/** As the router of the server has it. */
export const ONE_TOKEN = '/v1/tokens/:tokenId';
const FORBIDDEN = forbidden(
  'while the cluster is open, tokens are told and changed on the machine of the node that is asked, to no browser or proxy',
);
/** A secret must be in no cache. */
const HEADERS = { 'content-type': JSON_TYPE, 'cache-control': 'no-store' };

/** `{"role": "decide" | "read" | "admin", "name": string}`. @throws InvalidBodyError naming the field and its bound */
function parseCreate(body: unknown): TokenAsked {
  try {
    return validateTokenAsked(fieldsOf(body, ['role', 'name'], 'role and name'));
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidBodyError(error.field, error.message);
    throw error;
  }
}

/** Whether `?open=true` says that the last token of role admin may go. @throws InvalidBodyError */
function parseCanOpen(url: string): boolean {
  const begin = url.indexOf('?');
  const query = begin === -1 ? '' : url.slice(begin + 1);
  if (query !== '' && query !== 'open=true')
    throw new InvalidBodyError('query', 'query must be open=true, or nothing at all');
  return query !== '';
}

function formatFailure(reason: TokenFailure): HttpAnswer {
  const { status, text: message } = TOKEN_FAILURES[reason];
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return { status, headers: { ...HEADERS, ...retry }, body: { reason, message } };
}

function formatCreated(result: TokenCreated): HttpAnswer {
  if (!result.ok) return formatFailure(result.reason);
  const { info, token, pending } = result;
  return { status: 201, headers: HEADERS, body: { ...info, token, pending } };
}

/** 202: those in `pending` may take it until they hear of it. */
function formatRevoked(id: string, result: TokenRevoked): HttpAnswer {
  if (!result.ok) return formatFailure(result.reason);
  const { pending } = result;
  return { status: pending.length === 0 ? 200 : 202, headers: HEADERS, body: { id, pending } };
}

type OfToken = FastifyRequest<{ Params: { tokenId: string } }>;

export function addTokensRoutes(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  const gate = { node, forbidding: FORBIDDEN };
  app.get(TOKENS, (request, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    const tokens = node.access
      .tokens()
      .map(({ isConfigured, ...token }) => ({ ...token, ...(isConfigured && { configured: true }) }));
    sendAnswer(reply, { status: 200, headers: HEADERS, body: { tokens } });
    return reply;
  });
  app.post(TOKENS, (request, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    const asked = parseCreate(request.body);
    node.access.create(asked, (result) => {
      const answer = formatCreated(result);
      const told = result.ok ? { token: result.info.id } : { reason: result.reason };
      audited(logger, request, { action: 'tokens.create', ...asked, ...told, status: answer.status });
      sendAnswer(reply, answer);
    });
    return reply;
  });
  app.delete(ONE_TOKEN, (request: OfToken, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    const { tokenId: id } = request.params;
    const canOpen = parseCanOpen(request.url);
    if (!TOKEN_ID.test(id)) sendAnswer(reply, formatFailure('unknownToken'));
    else
      node.access.revoke(id, canOpen, (result) => {
        const answer = formatRevoked(id, result);
        const told = result.ok ? { pending: result.pending } : { reason: result.reason };
        audited(logger, request, { action: 'tokens.revoke', token: id, ...told, status: answer.status });
        sendAnswer(reply, answer);
      });
    return reply;
  });
}
