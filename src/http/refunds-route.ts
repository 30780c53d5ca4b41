/**
 * `POST /v1/refunds`: refunds a request by its descriptors and its request id, whatever keys the rules made of them.
 */
import type { FastifyInstance } from 'fastify';
import { isBoundedText } from '../api/bounded.ts';
import type { RefundQuestion } from '../api/refund.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { parseAllowBody } from './allow-body.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { formatRefundAnswer } from './refund-format.ts';

/** The path of the route. */
export const REFUNDS = '/v1/refunds';
const FIELDS = ['requestId', 'descriptors', 'userId', 'rule'] as const;

/**
 * Parses `{"requestId": string, "descriptors": {name: text}, "userId"?: string, "rule"?: string}`, with the same
 * values as in `POST /v1/allow`.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
function parseRefund(body: unknown): RefundQuestion {
  const { requestId, descriptors, userId, rule } = fieldsOf(
    body,
    FIELDS,
    'requestId, and userId or descriptors',
  );
  if (!isBoundedText(requestId, REQUEST_ID_BYTES_MAX))
    throw new InvalidBodyError('requestId', `requestId must be text of 1 to ${REQUEST_ID_BYTES_MAX} bytes`);
  const question = parseAllowBody({ descriptors, userId, rule }, undefined);
  return { descriptors: question.descriptors, rule: question.rule, requestId };
}

/** Adds the route. */
export function addRefundsRoute(app: FastifyInstance, { node }: HttpListenerInit): void {
  app.post(REFUNDS, (request, reply) => {
    node.refund(parseRefund(request.body), (answer, partition) => {
      if (node.wantsNoClients()) void reply.header('connection', 'close');
      sendAnswer(reply, formatRefundAnswer(answer, partition));
    });
    return reply;
  });
}
