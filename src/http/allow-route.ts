/**
 * `POST /v1/allow`: one request for a grant. Also the steps that this route has in common with `/v1/forward-auth` and
 * direct-allow.ts.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Question } from '../api/question.ts';
import { rateLimitHeaders } from '../api/rate-limit-headers.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { headerUserOf } from './user-header.ts';

/** The path of the route. */
export const ALLOW = '/v1/allow';

/** A request for a grant that was read. */
export interface Asking {
  /** See `clientOf`. */
  readonly client: string;
  readonly question: Question;
  /** When the request was read, on the monotonic clock. */
  readonly startedMillis: number;
  readonly send: (answer: HttpAnswer) => void;
}

/** Asks the node, counts the answer, and sends it. */
export function askAndAnswer(
  init: HttpListenerInit,
  { client, question, startedMillis, send }: Asking,
): void {
  const { shedding } = init.node;
  const load = shedding.entered(client, 1);
  init.node.ask(question, (answer, partition) => {
    shedding.left(load, 1);
    const limitHeaders =
      answer.kind === 'decision' && answer.decision.isBlocked !== true
        ? rateLimitHeaders(answer.decision, init.settings().rateLimitHeaders, init.wallMillis())
        : {};
    const formatted = formatAnswer(answer, partition, limitHeaders);
    init.node.answered(question, answer, startedMillis);
    init.observe(formatted.status, startedMillis);
    // Checked only now, because the request may have come before the node began to stop.
    send(init.node.wantsNoClients() ? asLast(formatted) : formatted);
  });
}

function asLast(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, connection: 'close' } };
}

/**
 * Parses a request for a grant.
 *
 * @param body undefined if there is none
 * @throws InvalidBodyError; the error handler of the server answers it with 400
 */
export function questionIn(
  { settings }: Pick<HttpListenerInit, 'settings'>,
  request: Pick<IncomingMessage, 'rawHeaders'>,
  body: unknown,
): Question {
  const headerUser = headerUserOf(request, settings().userHeader);
  // With a header that names the user, a request may come without a body.
  return parseAllowBody(body === undefined && headerUser !== undefined ? {} : body, headerUser);
}

/** Adds the route that handles the requests that direct-allow.ts does not. Both give the same answers. */
export function addAllowRoute(app: FastifyInstance, init: HttpListenerInit): void {
  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    const question = questionIn(init, request.raw, request.body);
    const send = (answer: HttpAnswer): void => sendAnswer(reply, answer);
    askAndAnswer(init, { client: clientOf(request), question, startedMillis, send });
    return reply;
  });
}
