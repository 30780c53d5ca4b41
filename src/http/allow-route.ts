/** `POST /v1/allow`: one request for a grant. It reads the body, asks, and has the answer formatted. */
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Question } from '../api/question.ts';
import { rateLimitHeaders } from '../api/rate-limit-headers.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { headerUserOf } from './user-header.ts';

export const ALLOW = '/v1/allow';

/** One request for a grant, on its way. */
export interface Asking {
  /** See `clientOf`. */
  readonly client: string;
  readonly wanted: Question;
  /** When it was read, on the monotonic clock. */
  readonly startedMillis: number;
  readonly send: (answer: HttpAnswer) => void;
}

/** Asks, counts what came of it, and answers. */
export function askAndAnswer(init: HttpDoorInit, { client, wanted, startedMillis, send }: Asking): void {
  const { shedding } = init.node;
  const share = shedding.entered(client, 1);
  init.node.ask(wanted, (answer, partition) => {
    shedding.left(share, 1);
    const limitHeaders =
      answer.kind === 'decision' && answer.decision.isBlocked !== true
        ? rateLimitHeaders(answer.decision, init.settings().rateLimitHeaders, init.wallMillis())
        : {};
    const formatted = formatAnswer(answer, partition, limitHeaders);
    init.node.answered(wanted, answer, startedMillis);
    init.observe(formatted.status, startedMillis);
    // It may have come before the node began to stop.
    send(init.node.wantsNoClients() ? asLast(formatted) : formatted);
  });
}

function asLast(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, connection: 'close' } };
}

/**
 * What a request asks for.
 *
 * @param body undefined where there is none
 * @throws InvalidBodyError, which the error handler of the server turns into a 400
 */
export function wantedIn(
  { settings }: Pick<HttpDoorInit, 'settings'>,
  request: Pick<IncomingMessage, 'rawHeaders'>,
  body: unknown,
): Question {
  const headerUser = headerUserOf(request, settings().userHeader);
  // Who named the user in a header may have nothing else to say.
  return parseAllowBody(body === undefined && headerUser !== undefined ? {} : body, headerUser);
}

/** The same as direct-allow.ts, for requests that are not as most are. */
export function addAllowRoute(app: FastifyInstance, init: HttpDoorInit): void {
  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    const wanted = wantedIn(init, request.raw, request.body);
    const send = (answer: HttpAnswer): void => sendAnswer(reply, answer);
    askAndAnswer(init, { client: clientOf(request), wanted, startedMillis, send });
    return reply;
  });
}
