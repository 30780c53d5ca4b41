/**
 * `GET /v1/users/{id}`: how a user stands, under every rule or, with `?rule=`, under one; and `POST /v1/users/{id}/refunds`: a grant
 * is taken back. It reads the path, the query and the body, asks, and formats. Nothing is granted here.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { LimitStanding } from '../api/answer.ts';
import type { LookAnswer, LookRequest } from '../api/look.ts';
import { isBoundedText } from '../api/bounded.ts';
import type { RefundRequest } from '../api/refund.ts';
import { invalidIn, KEY_BYTES_MAX, REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { formatRefund } from './refund-format.ts';

/** As the router of the server has it. */
export const USER = '/v1/users/:userId';
export const REFUNDS = '/v1/users/:userId/refunds';
/** Every byte of a user id may be written with three. */
export const USER_LENGTH_MAX = 3 * KEY_BYTES_MAX;
const RULE = 'rule';

/** @throws InvalidBodyError naming the part and its bound */
function parseLook(userId: string, url: string): LookRequest {
  const look: LookRequest = { ask: 'look', userId, ruleId: ruleIn(url) };
  const invalid = invalidIn({ userId: look.userId, ruleId: look.ruleId });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return look;
}

/** Not by the parser of the server: that leaves bytes that are not UTF-8 as they were written. */
function ruleIn(url: string): string | undefined {
  const begin = url.indexOf('?');
  if (begin === -1 || begin === url.length - 1) return undefined;
  const fields = url.slice(begin + 1).split('&');
  const [name, ...value] = (fields[0] ?? '').split('=');
  if (fields.length > 1 || name !== RULE)
    throw new InvalidBodyError('query', `query must be ${RULE}=, once, or nothing at all`);
  try {
    return decodeURIComponent(value.join('=').replaceAll('+', ' '));
  } catch {
    throw new InvalidBodyError(RULE, `${RULE} must be percent-encoded UTF-8`);
  }
}

function formatStanding(
  userId: string,
  { standing }: Extract<LookAnswer, { kind: 'standing' }>,
  partition: number,
): HttpAnswer {
  const limits = standing.limits.map(limitOf);
  const { rulesVersion } = standing;
  const decided = { partition, ...standing.decided };
  const blocked = standing.isBlocked === true ? { blocked: true } : {};
  return {
    status: 200,
    headers: { 'content-type': JSON_TYPE },
    body: { userId, ...blocked, rulesVersion, limits, decided },
  };
}

/** Who can be granted something at once has nothing to wait for. */
function limitOf(standing: LimitStanding): Record<string, unknown> {
  const { ruleId: rule, limit, windowMillis, remaining, resetMillis, retryAfterMillis } = standing;
  const shown = { rule, limit, windowMillis, remaining, resetMillis };
  return retryAfterMillis === 0 ? shown : { ...shown, retryAfterMillis };
}

/** `{"requestId": string}`. @throws InvalidBodyError naming the field and its bound */
function parseRefund(userId: string, body: unknown): RefundRequest {
  const { requestId } = fieldsOf(body, ['requestId'], 'requestId');
  if (!isBoundedText(requestId, REQUEST_ID_BYTES_MAX)) {
    throw new InvalidBodyError('requestId', `requestId must be text of 1 to ${REQUEST_ID_BYTES_MAX} bytes`);
  }
  const invalid = invalidIn({ userId });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return { ask: 'refund', userId, requestId };
}

export function addUsersRoute(app: FastifyInstance, { node }: HttpDoorInit): void {
  const send = (reply: FastifyReply, answer: HttpAnswer): void => {
    if (node.wantsNoClients()) void reply.header('connection', 'close');
    sendAnswer(reply, answer);
  };
  app.post<{ Params: { userId: string } }>(REFUNDS, (request, reply) => {
    const refund = parseRefund(request.params.userId, request.body);
    node.refund(refund, (answer, partition) => {
      if (answer.kind === 'refund') send(reply, formatRefund(answer.refund, partition));
      else send(reply, formatAnswer(answer, partition));
    });
    return reply;
  });
  app.get<{ Params: { userId: string } }>(USER, (request, reply) => {
    const look = parseLook(request.params.userId, request.url);
    node.look(look, (answer, partition) => {
      if (answer.kind === 'standing') send(reply, formatStanding(look.userId, answer, partition));
      else send(reply, formatAnswer(answer, partition));
    });
    return reply;
  });
}
