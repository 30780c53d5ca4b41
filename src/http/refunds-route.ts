/**
 * `POST /v1/refunds`: a request is given back by its descriptors and its id, whatever key the rules made of them. It reads the
 * body, asks, and formats. Nothing is granted here.
 */
import type { FastifyInstance } from 'fastify';
import { isBoundedText } from '../api/bounded.ts';
import type { DescribedRefund } from '../api/refund.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { formatNothingToRefund, formatRefund } from './refund-format.ts';

export const REFUNDS = '/v1/refunds';
const FIELDS = ['requestId', 'descriptors', 'userId'] as const;

/**
 * `{"requestId": string, "descriptors": {name: text}, "userId"?: string}`, as `POST /v1/allow` had them.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
function parseRefund(body: unknown): DescribedRefund {
  const { requestId, descriptors, userId } = fieldsOf(body, FIELDS, 'requestId and descriptors');
  if (!isBoundedText(requestId, REQUEST_ID_BYTES_MAX))
    throw new InvalidBodyError('requestId', `requestId must be text of 1 to ${REQUEST_ID_BYTES_MAX} bytes`);
  const request = parseAllowBody({ descriptors: descriptors ?? {}, userId }, undefined);
  if (request.ask !== 'described') throw new InvalidBodyError('descriptors', 'descriptors must be there');
  return { ask: 'refund described', descriptors: request.descriptors, requestId };
}

export function addRefundsRoute(app: FastifyInstance, { node }: HttpDoorInit): void {
  app.post(REFUNDS, (request, reply) => {
    node.refundDescribed(parseRefund(request.body), (answer, partition) => {
      let formatted: HttpAnswer;
      if (answer.kind === 'refund') formatted = formatRefund(answer.refund, partition, answer.kept);
      else if (answer.kind === 'unlimited') formatted = formatNothingToRefund(answer.rulesVersion);
      else formatted = formatAnswer(answer, partition);
      if (node.wantsNoClients()) void reply.header('connection', 'close');
      sendAnswer(reply, formatted);
    });
    return reply;
  });
}
