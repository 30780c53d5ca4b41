/** `POST /v1/allow`: one request for a grant. It reads the body, asks, and has the answer formatted. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Question } from '../api/question.ts';
import { rateLimitHeaders } from '../api/rate-limit-headers.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { headerUserOf } from './user-header.ts';

export const ALLOW = '/v1/allow';

function asItIs(answer: HttpAnswer): HttpAnswer {
  return answer;
}

/** One request for a grant, on its way. */
export interface Asking {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: Question;
  /** When it was read, on the monotonic clock. */
  readonly startedMillis: number;
}

/** Asks, counts what came of it, and answers. */
export function askAndAnswer(
  init: HttpDoorInit,
  { request, reply, wanted, startedMillis }: Asking,
  shown: (answer: HttpAnswer) => HttpAnswer = asItIs,
): void {
  const { shedding } = init.node;
  const share = shedding.entered(clientOf(request), 1);
  init.node.ask(wanted, (answer, partition) => {
    shedding.left(share, 1);
    const limitHeaders =
      answer.kind === 'decision' && answer.decision.isBlocked !== true
        ? rateLimitHeaders(answer.decision, init.settings.rateLimitHeaders, init.wallMillis())
        : {};
    const formatted = formatAnswer(answer, partition, limitHeaders);
    init.node.answered(wanted, answer, startedMillis);
    init.observe(formatted.status, startedMillis);
    // It may have come before the node began to stop.
    if (init.node.wantsNoClients()) void reply.header('connection', 'close');
    sendAnswer(reply, shown(formatted));
  });
}

export function addAllowRoute(app: FastifyInstance, init: HttpDoorInit): void {
  const { userHeader } = init.settings;
  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    // Throws InvalidBodyError, which the error handler of the server turns into a 400.
    const headerUser = headerUserOf(request.raw, userHeader);
    // Who named the user in a header may have nothing else to say.
    const body = request.body === undefined && headerUser !== undefined ? {} : request.body;
    const wanted = parseAllowBody(body, headerUser);
    askAndAnswer(init, { request, reply, wanted, startedMillis });
    return reply;
  });
}
