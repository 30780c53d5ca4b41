/**
 * `@quorate/client/fastify`: a hook that limits routes of Fastify 4 and 5, one by one or all. Fastify itself is not imported.
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

/** What is used of a request of Fastify. */
export interface FastifyRequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers: NodeHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** What is used of a reply of Fastify. */
export interface FastifyReplyLike {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/**
 * For `onRequest`, or `preHandler` where something before it says who asks.
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
      // Fastify goes on unless it is told that the answer is given.
      return reply;
    }
    if (verdict.waitMillis > 0) await delay(verdict.waitMillis);
    return undefined;
  };
}
