/** `POST /v1/allow`: one request for a grant. It reads the body, asks, and has the answer formatted. */
import type { FastifyInstance } from 'fastify';
import { type AllowRequest, invalidIn, REQUEST_FIELDS, type RequestField } from '../api/request.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpDoorInit } from './door-init.ts';
import { sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';

export const ALLOW = '/v1/allow';

/**
 * `{"userId": string, "timestampMillis"?: integer, "cost"?: integer, "rule"?: string, "requestId"?: string}`.
 * A `null` counts as absent.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
function parseAllowBody(body: unknown): AllowRequest {
  // Only claimed: `invalidIn` checks every type and bound.
  const { userId, timestampMillis, cost, rule, requestId } = fieldsOf(
    body,
    REQUEST_FIELDS,
    'at least userId',
  ) as { readonly [Name in RequestField]?: never };
  const request: AllowRequest = {
    userId: userId ?? '',
    timestampMillis: timestampMillis ?? undefined,
    cost: cost ?? undefined,
    ruleId: rule ?? undefined,
    requestId: requestId ?? undefined,
  };
  const invalid = invalidIn(request);
  if (invalid !== undefined) throw new InvalidBodyError(invalid.field, invalid.message);
  return request;
}

export function addAllowRoute(app: FastifyInstance, init: HttpDoorInit): void {
  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    // Throws InvalidBodyError, which the error handler of the server turns into a 400.
    const wanted = parseAllowBody(request.body);
    init.node.allow(wanted, (answer, partition) => {
      const formatted = formatAnswer(answer, partition, init.wallMillis());
      init.observe(formatted.status, startedMillis);
      // It may have come before the node began to stop.
      if (init.node.wantsNoClients()) void reply.header('connection', 'close');
      sendAnswer(reply, formatted);
    });
    return reply;
  });
}
