/** Formats the answer to a refund as an HTTP response. Pure. */
import type { KeptLimit, Refund, RefundQuestionAnswer } from '../api/refund.ts';
import { formatAnswer } from './answer-format.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

const headers = { 'content-type': JSON_TYPE };

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
      headers,
      body: { refunded, decided: receipt, error: { type: 'not_remembered', field: 'requestId', message } },
    };
  }
  const stays = kept?.map(({ ruleId: rule, userId: key }) => ({ rule, key }));
  const body = { refunded, rule: ruleId, cost, rulesVersion, decided: receipt };
  return { status: 200, headers, body: stays === undefined ? body : { ...body, kept: stays } };
}

/** The response if no rule limits such a request. */
function formatNothingToRefund(rulesVersion: number): HttpAnswer {
  const message = 'no rule limits a request with these descriptors, so nothing was counted';
  const error = { type: 'not_remembered', field: 'descriptors', message };
  return { status: 404, headers, body: { refunded: false, rulesVersion, error } };
}
