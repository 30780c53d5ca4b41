/**
 * `@quorate/client/fastify`: a hook that limits routes of Fastify 4 and 5, one by one or all. Fastify itself is not
 * imported.
 *
 * @example
 * import { QuorateClient } from '@quorate/client';
 * import { byIp, rateLimit } from '@quorate/client/fastify';
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101'] });
 * app.get('/', { onRequest: rateLimit({ client, identify: byIp() }) }, () => 'hello');
 */
import { setTimeout as delay } from 'node:timers/promises';
import { headerOf, type NodeHeaders, pathOfUrl } from './middleware/facts.ts';
import { limitOf, type RateLimitOptions } from './middleware/limit.ts';

export * from './middleware/index.ts';

/** The part of a request of Fastify that the hook reads. */
export interface FastifyRequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers: NodeHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The part of a reply of Fastify that the hook uses. */
export interface FastifyReplyLike {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/**
 * A hook that limits requests. Register it as `onRequest`, or as `preHandler` if an earlier hook identifies the user.
 *
 * @throws InvalidOptionError
 */
export function rateLimit<R extends FastifyRequestLike>(
  options: RateLimitOptions<R>,
): (request: R, reply: FastifyReplyLike) => Promise<unknown> {
  const limit = limitOf(options);
  return async (request, reply) => {
    const verdict = await limit(request, {
      method: request.method,
      path: pathOfUrl(request.url),
      peerAddress: request.socket.remoteAddress,
      header: (name) => headerOf(request.headers, name),
    });
    reply.headers(verdict.headers);
    if (!verdict.passes) {
      reply.code(verdict.status);
      reply.send(verdict.body);
      // To Fastify, a returned reply means that the request is answered.
      return reply;
    }
    if (verdict.waitMillis > 0) await delay(verdict.waitMillis);
    return undefined;
  };
}
