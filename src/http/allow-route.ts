/** `POST /v1/allow`: one request for a grant. It reads the body, asks, and has the answer formatted. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DescribedDone, DescribedRequest } from '../api/described.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import { rateLimitHeaders } from '../api/rate-limit-headers.ts';
import type { AllowRequest } from '../api/request.ts';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import { clientOf } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { headerUserOf } from './user-header.ts';

export const ALLOW = '/v1/allow';

/** Asks, in whichever of the two ways the body did. */
export function askFor(
  node: Pick<NodeBehindDoor, 'allow' | 'allowDescribed'>,
  wanted: AllowRequest | DescribedRequest,
  done: DescribedDone,
): void {
  if (wanted.ask === 'described') node.allowDescribed(wanted, done);
  else node.allow(wanted, done);
}

function asItIs(answer: HttpAnswer): HttpAnswer {
  return answer;
}

/** One request for a grant, on its way. */
export interface Asking {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly wanted: AllowRequest | DescribedRequest;
  /** When it was read, on the monotonic clock. */
  readonly startedMillis: number;
}

/** How a route asks, and shows the answer: it is counted as it was. */
interface Way {
  readonly ask?: (node: NodeBehindDoor, wanted: AllowRequest | DescribedRequest, done: DescribedDone) => void;
  readonly shown?: (answer: HttpAnswer) => HttpAnswer;
}

/** Asks, counts what came of it, and answers. */
export function askAndAnswer(
  init: HttpDoorInit,
  { request, reply, wanted, startedMillis }: Asking,
  { ask = askFor, shown = asItIs }: Way = {},
): void {
  const { shedding } = init.node;
  const share = shedding.entered(clientOf(request), 1);
  ask(init.node, wanted, (answer, partition) => {
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
