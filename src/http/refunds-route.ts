/**
 * `POST /v1/refunds`: refunds a request by its descriptors and its request id. The caller need not know the keys that
 * the rules made of them. Also formats the answers to all refunds.
 */
import type { FastifyInstance } from 'fastify';
import type { KeptLimit, Refund, RefundQuestionAnswer, RefundQuestion } from '../api/refund.ts';
import { formatAnswer } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { isBoundedText } from '../api/bounded.ts';
import { REQUEST_ID_BYTES_MAX } from '../api/request.ts';
import { parseAllowBody } from './allow-body.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';

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

const HEADERS = { 'content-type': JSON_TYPE };

/** The response to a refund. */
export function formatRefundAnswer(answer: RefundQuestionAnswer, partition: number): HttpAnswer {
  if (answer.kind === 'refund') return formatRefund(answer.refund, partition, answer.kept);
  return answer.kind === 'unlimited'
    ? formatNothingToRefund(answer.rulesVersion)
    : formatAnswer(answer, partition);
}

/** @param kept the limits that stay charged; undefined: not known */
function formatRefund(
  { refunded, ruleId, cost, decided, rulesVersion }: Refund,
  partition: number,
  kept: readonly KeptLimit[] | undefined,
): HttpAnswer {
  const receipt = { partition, ...decided };
  if (!refunded) {
    const message =
      'no grant is remembered under this requestId: the request was denied or never decided, or it is too long ago';
    return {
      status: 404,
      headers: HEADERS,
      body: { refunded, decided: receipt, error: { type: 'not_remembered', field: 'requestId', message } },
    };
  }
  const stays = kept?.map(({ ruleId: rule, userId: key }) => ({ rule, key }));
  const body = { refunded, rule: ruleId, cost, rulesVersion, decided: receipt };
  return { status: 200, headers: HEADERS, body: stays === undefined ? body : { ...body, kept: stays } };
}

/** The response if no rule limits such a request. */
function formatNothingToRefund(rulesVersion: number): HttpAnswer {
  const message = 'no rule limits a request with these descriptors, so nothing was counted';
  const error = { type: 'not_remembered', field: 'descriptors', message };
  return { status: 404, headers: HEADERS, body: { refunded: false, rulesVersion, error } };
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
