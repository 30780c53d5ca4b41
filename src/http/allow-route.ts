/** `POST /v1/allow`: one request for a grant. It reads the body, asks, and has the answer formatted. */
import type { FastifyInstance } from 'fastify';
import { parseAllowBody } from './allow-body.ts';
import { formatAnswer } from './answer-format.ts';
import type { HttpDoorInit } from './door-init.ts';
import { sendAnswer } from './http-answer.ts';

export const ALLOW = '/v1/allow';

export function addAllowRoute(app: FastifyInstance, init: HttpDoorInit): void {
  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    // Throws InvalidBodyError, which the error handler of the server turns into a 400.
    const wanted = parseAllowBody(request.body);
    init.node.allow(wanted, (answer, partition) => {
      const formatted = formatAnswer(answer, partition, init.wallMillis());
      init.node.answered(wanted, answer, startedMillis);
      init.observe(formatted.status, startedMillis);
      // It may have come before the node began to stop.
      if (init.node.wantsNoClients()) void reply.header('connection', 'close');
      sendAnswer(reply, formatted);
    });
    return reply;
  });
}
