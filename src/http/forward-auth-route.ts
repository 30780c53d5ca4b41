/**
 * `GET /v1/forward-auth`: a gateway asks before it passes a request on (forward auth of Traefik and Caddy, `auth_request` of
 * nginx). 2xx lets it pass; whatever else is answered, and no answer, does not.
 */
import type { FastifyInstance } from 'fastify';
import type { DescribedDone } from '../api/described.ts';
import type { NodeBehindDoor } from '../api/front-door.ts';
import { ALLOW_STATUS } from '../api/refusals.ts';
import { askAndAnswer, askFor } from './allow-route.ts';
import { trusting } from './client-address.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type ForwardedRequest, forwardedRequestOf } from './forwarded-request.ts';

export const FORWARD_AUTH = '/v1/forward-auth';

export function addForwardAuthRoute(app: FastifyInstance, init: HttpDoorInit): void {
  const { node, settings } = init;
  const isTrusted = trusting(settings.trustedProxies ?? []);
  // HEAD would take a grant as well, and is not what gateways ask with.
  app.get(FORWARD_AUTH, { exposeHeadRoute: false }, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    const forwarding = { settings, isTrusted, isDescribing: node.hasDocument() };
    const { wanted, denyStatus } = forwardedRequestOf(request.raw, forwarding);
    // Each is a grant of its own.
    void reply.header('cache-control', 'no-store');
    askAndAnswer(
      init,
      { request, reply, wanted, startedMillis },
      {
        ask: askForwarded,
        shown: (answer) =>
          answer.status === ALLOW_STATUS.denied ? { ...answer, status: denyStatus } : answer,
      },
    );
    return reply;
  });
}

/** What names no rule may be taken for one of the default rule by a node that has not heard of the document in force. */
function askForwarded(node: NodeBehindDoor, wanted: ForwardedRequest['wanted'], done: DescribedDone): void {
  if (wanted.ask === undefined && wanted.ruleId === undefined) node.allowByDefault(wanted, done);
  else askFor(node, wanted, done);
}
