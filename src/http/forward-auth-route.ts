/**
 * `GET /v1/forward-auth`: an API gateway asks before it forwards a request (forward auth of Traefik and Caddy,
 * `auth_request` of nginx). A 2xx answer lets the request pass. Any other answer, or none, does not.
 */
import type { FastifyInstance } from 'fastify';
import { ALLOW_STATUS } from '../api/refusals.ts';
import { askAndAnswer } from './allow-route.ts';
import { clientOf } from './callers.ts';
import { trusting } from './client-address.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { forwardedRequestOf } from './forwarded-request.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';

/** The path of the route. */
export const FORWARD_AUTH = '/v1/forward-auth';

/** Adds the route. */
export function addForwardAuthRoute(app: FastifyInstance, init: HttpListenerInit): void {
  let settings = init.settings();
  let isTrusted = trusting(settings.trustedProxies ?? []);
  // No HEAD route: it would also use up a grant, and gateways do not ask with HEAD.
  app.get(FORWARD_AUTH, { exposeHeadRoute: false }, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    if (settings !== init.settings()) {
      settings = init.settings();
      isTrusted = trusting(settings.trustedProxies ?? []);
    }
    const { wanted, denyStatus } = forwardedRequestOf(request.raw, { settings, isTrusted });
    // Every answer is a separate grant, so it must not be cached.
    void reply.header('cache-control', 'no-store');
    const send = (answer: HttpAnswer): void =>
      sendAnswer(reply, answer.status === ALLOW_STATUS.denied ? { ...answer, status: denyStatus } : answer);
    askAndAnswer(init, { client: clientOf(request), wanted, startedMillis, send });
    return reply;
  });
}
