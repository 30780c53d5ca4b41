/**
 * `@quorate/client/express`: middleware for Express 4 and 5, and for frameworks that call middleware with the same
 * three arguments. Express itself is not imported.
 *
 * @example
 * import { QuorateClient } from '@quorate/client';
 * import { byIp, rateLimit } from '@quorate/client/express';
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101'] });
 * app.use(rateLimit({ client, identify: byIp() }));
 */
import { setTimeout as delay } from 'node:timers/promises';
import { headerOf, type NodeHeaders, pathOfUrl } from './middleware/facts.ts';
import { limitOf, type RateLimitOptions } from './middleware/limit.ts';

export * from './middleware/index.ts';

/** The part of a request of Express that the middleware reads. */
export interface ExpressRequestLike {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The URL before routers removed their mount path from it. */
  readonly originalUrl?: string | undefined;
  readonly headers: NodeHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The part of a response of Express that the middleware uses. */
export interface ExpressResponseLike {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

type Next = (error?: unknown) => void;

/**
 * Middleware that limits requests. Denied requests are answered here and do not reach the next handler.
 *
 * @throws InvalidOptionError
 */
export function rateLimit<R extends ExpressRequestLike>(
  options: RateLimitOptions<R>,
): (request: R, response: ExpressResponseLike, next: Next) => void {
  const limit = limitOf(options);
  const maybePass = async (request: R, response: ExpressResponseLike): Promise<boolean> => {
    const verdict = await limit(request, {
      method: request.method ?? '',
      path: pathOfUrl(request.originalUrl ?? request.url ?? ''),
      peerAddress: request.socket.remoteAddress,
      header: (name) => headerOf(request.headers, name),
    });
    for (const [name, value] of Object.entries(verdict.headers)) response.setHeader(name, value);
    if (verdict.passes) {
      if (verdict.waitMillis > 0) await delay(verdict.waitMillis);
      return true;
    }
    response.statusCode = verdict.status;
    response.end(verdict.body);
    return false;
  };
  const run = async (request: R, response: ExpressResponseLike, next: Next): Promise<void> => {
    let passes = false;
    try {
      passes = await maybePass(request, response);
    } catch (error) {
      return next(error);
    }
    // Outside of the `try` above, so that errors of later handlers are not caught here.
    if (passes) next();
  };
  return (request, response, next) => void run(request, response, next);
}
