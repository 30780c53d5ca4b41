/**
 * `POST /v1/allow/batch`: many requests for grants in one body, each decided for itself and answered in its place, as if it
 * had come alone. What they cost less is the way: one body to read, one response to write.
 */
import type { FastifyInstance } from 'fastify';
import type { Question } from '../api/question.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatBody } from './answer-format.ts';
import { askBatch } from './batch-asking.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { type HeaderUser, headerUserOf } from './user-header.ts';

export const ALLOW_BATCH = '/v1/allow/batch';
/** Requests of one body. */
export const BATCH_MAX = 1_000;
/** Room for that many of usual length; a body of the longest ids holds fewer. */
export const BATCH_BODY_BYTES_MAX = 524_288;

/**
 * `{"requests": [...]}`, 1 to `BATCH_MAX` of what `/v1/allow` takes.
 *
 * @param headerUser the user of all of them, if a header of the request names one
 * @throws InvalidBodyError for the first that is wrong: then none is asked
 */
function parseBatchBody(body: unknown, headerUser: HeaderUser | undefined): Question[] {
  const { requests } = fieldsOf(body, ['requests'], 'requests, a list');
  if (!Array.isArray(requests) || requests.length === 0 || requests.length > BATCH_MAX)
    throw new InvalidBodyError('requests', `requests must be a list of 1 to ${BATCH_MAX}`);
  return requests.map((each, i) => {
    try {
      return parseAllowBody(each, headerUser);
    } catch (error) {
      if (!(error instanceof InvalidBodyError)) throw error;
      const place = `requests[${i}]`;
      const field = error.field === 'body' ? place : `${place}.${error.field}`;
      throw new InvalidBodyError(field, `${place}: ${error.message}`);
    }
  });
}

export function addBatchRoute(app: FastifyInstance, init: HttpDoorInit): void {
  app.post(ALLOW_BATCH, { bodyLimit: BATCH_BODY_BYTES_MAX }, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    const requests = parseBatchBody(request.body, headerUserOf(request.raw, init.settings.userHeader));
    const share = init.node.shedding.entered(clientOf(request), requests.length);
    askBatch(init.node, requests, {
      told(wanted, answer, partition) {
        const { status, body } = formatBody(answer, partition);
        init.node.answered(wanted, answer, startedMillis);
        init.observe(status, startedMillis);
        init.node.shedding.left(share, 1);
        return { status, ...body };
      },
      done(answers) {
        if (init.node.wantsNoClients()) void reply.header('connection', 'close');
        sendAnswer(reply, { status: 200, headers: { 'content-type': JSON_TYPE }, body: { answers } });
      },
    });
    return reply;
  });
}
