/**
 * `GET /v1/keys/{key}`: the status of a key, under all rules that count by such keys or, with `?rule=`, under one.
 * `/v1/users/{id}` is short for `/v1/keys/user={id}`. `POST /v1/users/{id}/refunds` refunds a grant.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { LimitStatus } from '../api/answer.ts';
import type { PeekAnswer, PeekQuestion } from '../api/peek.ts';
import { isBoundedText } from '../api/bounded.ts';
import type { RefundQuestion } from '../api/refund.ts';
import { GLOBAL_KEY, userKey } from '../api/key-text.ts';
import { invalidInUser, questionOf } from '../api/question.ts';
import { KEY_BYTES_MAX, REQUEST_ID_BYTES_MAX, RULE_ID_BYTES_MAX } from '../api/request.ts';
import { waitHelps } from '../api/waiting.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { formatRefundAnswer } from './refunds-route.ts';

/** The paths of the routes, in Fastify's notation. */
export const KEY = '/v1/keys/:key';
export const USER = '/v1/users/:userId';
export const REFUNDS = '/v1/users/:userId/refunds';
/** The longest parameter in a path. Percent-encoding may write every byte with three characters. */
export const USER_LENGTH_MAX = 3 * KEY_BYTES_MAX;
const RULE = 'rule';

/** The key of a user, such as `user=ada`. @throws InvalidBodyError if it is not a valid user id */
export function keyOfUser(userId: string): string {
  const invalid = invalidInUser({ userId });
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  // Every valid user id has a key, so the fallback is never used.
  return userKey(userId) ?? GLOBAL_KEY;
}

/** Parses a peek. @throws InvalidBodyError naming the part and its bound */
function parsePeek(key: string, url: string): PeekQuestion {
  if (!isBoundedText(key, KEY_BYTES_MAX))
    throw new InvalidBodyError('key', `key must be text of 1 to ${KEY_BYTES_MAX} bytes`);
  const rule = ruleIn(url);
  if (rule !== undefined && !isBoundedText(rule, RULE_ID_BYTES_MAX))
    throw new InvalidBodyError(RULE, `${RULE} must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
  return { key, rule };
}

/** The rule in `?rule=`. Fastify's own parser is not used, because it leaves invalid UTF-8 undecoded. */
function ruleIn(url: string): string | undefined {
  const begin = url.indexOf('?');
  if (begin === -1 || begin === url.length - 1) return undefined;
  const fields = url.slice(begin + 1).split('&');
  const [name, ...value] = (fields[0] ?? '').split('=');
  if (fields.length > 1 || name !== RULE)
    throw new InvalidBodyError('query', `query must be ${RULE}= once, or absent`);
  try {
    return decodeURIComponent(value.join('=').replaceAll('+', ' '));
  } catch {
    throw new InvalidBodyError(RULE, `${RULE} must be percent-encoded UTF-8`);
  }
}

function formatStatus(
  about: Readonly<Record<string, string>>,
  { keyStatus }: Extract<PeekAnswer, { kind: 'keyStatus' }>,
  partition: number,
): HttpAnswer {
  const limits = keyStatus.limits.map(limitOf);
  const { rulesVersion } = keyStatus;
  const decided = { partition, ...keyStatus.decided };
  const { isBlocked, blockedUntilMillis } = keyStatus;
  const end = blockedUntilMillis === undefined ? {} : { blockedUntilMillis };
  const blocked = isBlocked === true ? { blocked: true, ...end } : {};
  const unmatched = keyStatus.isUnmatched === true ? { unmatched: true } : {};
  return {
    status: 200,
    headers: { 'content-type': JSON_TYPE },
    body: { ...about, ...blocked, ...unmatched, rulesVersion, limits, decided },
  };
}

/** The status under one limit. It has a wait only if a request would have to wait and waiting helps. */
function limitOf(keyStatus: LimitStatus): Record<string, unknown> {
  const { ruleId: rule, limit, windowMillis, remaining, resetMillis, retryAfterMillis } = keyStatus;
  const { restoredMillis } = keyStatus;
  const restored = restoredMillis === undefined ? {} : { restoredMillis };
  const shown = { rule, limit, windowMillis, remaining, resetMillis, ...restored };
  return retryAfterMillis === 0 || !waitHelps(keyStatus) ? shown : { ...shown, retryAfterMillis };
}

/** Parses `{"requestId": string, "rule"?: string}`. @throws InvalidBodyError naming the field and its bound */
function parseRefund(userId: string, body: unknown): RefundQuestion {
  const { requestId, rule: named } = fieldsOf(body, ['requestId', RULE], 'requestId');
  // Null counts as absent, as in every other body.
  const rule = named ?? undefined;
  if (!isBoundedText(requestId, REQUEST_ID_BYTES_MAX)) {
    throw new InvalidBodyError('requestId', `requestId must be text of 1 to ${REQUEST_ID_BYTES_MAX} bytes`);
  }
  keyOfUser(userId);
  if (rule !== undefined && !isBoundedText(rule, RULE_ID_BYTES_MAX))
    throw new InvalidBodyError(RULE, `${RULE} must be text of 1 to ${RULE_ID_BYTES_MAX} bytes`);
  return { ...questionOf({ userId, rule }), requestId };
}

/** Adds the routes. */
export function addUsersRoute(app: FastifyInstance, { node }: HttpListenerInit): void {
  const send = (reply: FastifyReply, answer: HttpAnswer): void => {
    if (node.wantsNoClients()) void reply.header('connection', 'close');
    sendAnswer(reply, answer);
  };
  app.post<{ Params: { userId: string } }>(REFUNDS, (request, reply) => {
    const refund = parseRefund(request.params.userId, request.body);
    node.refund(refund, (answer, partition) => send(reply, formatRefundAnswer(answer, partition)));
    return reply;
  });
  const peek = (question: PeekQuestion, about: Readonly<Record<string, string>>, reply: FastifyReply): void =>
    node.peek(question, (answer, partition) => {
      if (answer.kind === 'keyStatus') send(reply, formatStatus(about, answer, partition));
      else send(reply, formatAnswer(answer, partition));
    });
  app.get<{ Params: { userId: string } }>(USER, (request, reply) => {
    const { userId } = request.params;
    const key = keyOfUser(userId);
    peek(parsePeek(key, request.url), { userId, key }, reply);
    return reply;
  });
  app.get<{ Params: { key: string } }>(KEY, (request, reply) => {
    const { key } = request.params;
    peek(parsePeek(key, request.url), { key }, reply);
    return reply;
  });
}
