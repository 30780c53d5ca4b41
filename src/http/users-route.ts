/**
 * `GET /v1/users/{id}`: how a user stands, under every rule or, with `?rule=`, under one. It reads the path and the query, asks,
 * and formats. Nothing is granted by it, and nothing changes.
 */
import type { FastifyInstance } from 'fastify';
import type { LimitStanding } from '../api/answer.ts';
import type { LookAnswer, LookRequest } from '../api/look.ts';
import { invalidIn, KEY_BYTES_MAX } from '../api/request.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { InvalidBodyError } from './json-body.ts';

/** As the router of the server has it. */
export const USER = '/v1/users/:userId';
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
  const decided = { partition, ...standing.decided };
  return { status: 200, headers: { 'content-type': JSON_TYPE }, body: { userId, limits, decided } };
}

/** Who can be granted something at once has nothing to wait for. */
function limitOf({ ruleId, retryAfterMillis, ...limit }: LimitStanding): Record<string, unknown> {
  const { limit: most, windowMillis, remaining, resetMillis } = limit;
  const shown = { rule: ruleId, limit: most, windowMillis, remaining, resetMillis };
  return retryAfterMillis === 0 ? shown : { ...shown, retryAfterMillis };
}

export function addUsersRoute(app: FastifyInstance, { node, wallMillis }: HttpDoorInit): void {
  app.get<{ Params: { userId: string } }>(USER, (request, reply) => {
    const look = parseLook(request.params.userId, request.url);
    node.look(look, (answer, partition) => {
      if (node.wantsNoClients()) void reply.header('connection', 'close');
      sendAnswer(
        reply,
        answer.kind === 'standing'
          ? formatStanding(look.userId, answer, partition)
          : formatAnswer(answer, partition, wallMillis()),
      );
    });
    return reply;
  });
}
