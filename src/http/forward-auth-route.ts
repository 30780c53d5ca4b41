/**
 * `GET /v1/forward-auth`: a gateway asks before it passes a request on (forward auth of Traefik and Caddy, `auth_request` of
 * nginx). 2xx lets it pass; whatever else is answered, and no answer, does not.
 */
import type { FastifyInstance } from 'fastify';
import { ALLOW_STATUS } from '../api/refusals.ts';
import { askAndAnswer } from './allow-route.ts';
import { clientOf } from './callers.ts';
import { trusting } from './client-address.ts';
import type { HttpDoorInit } from './door-init.ts';
import { forwardedRequestOf } from './forwarded-request.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';

export const FORWARD_AUTH = '/v1/forward-auth';

export function addForwardAuthRoute(app: FastifyInstance, init: HttpDoorInit): void {
  let settings = init.settings();
  let isTrusted = trusting(settings.trustedProxies ?? []);
  // HEAD would take a grant as well, and is not what gateways ask with.
  app.get(FORWARD_AUTH, { exposeHeadRoute: false }, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    if (settings !== init.settings()) {
      settings = init.settings();
      isTrusted = trusting(settings.trustedProxies ?? []);
    }
    const { wanted, denyStatus } = forwardedRequestOf(request.raw, { settings, isTrusted });
    // Each is a grant of its own.
    void reply.header('cache-control', 'no-store');
    const send = (answer: HttpAnswer): void =>
      sendAnswer(reply, answer.status === ALLOW_STATUS.denied ? { ...answer, status: denyStatus } : answer);
    askAndAnswer(init, { client: clientOf(request), wanted, startedMillis, send });
    return reply;
  });
}
