/**
 * `@quorate/client/hono`: middleware for Hono 4. Hono itself is not imported.
 *
 * @example
 * import { QuorateClient } from '@quorate/client';
 * import { byApiKey, rateLimit } from '@quorate/client/hono';
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101'] });
 * app.use(rateLimit({ client, identify: byApiKey() }));
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FetchResponse } from './fetch.ts';
import { limitOf, type RateLimitOptions } from './middleware/limit.ts';

export * from './middleware/index.ts';

/** The part of a context of Hono that the middleware uses. */
export interface HonoContextLike {
  readonly req: {
    readonly method: string;
    readonly path: string;
    header(name: string): string | undefined;
  };
  header(name: string, value: string): void;
}

/** The options of `rateLimit` for Hono. */
export interface HonoOptions<C> extends RateLimitOptions<C> {
  /** Returns the address of the connection; use `getConnInfo` of your platform. `byIp` needs it. */
  readonly peerAddress?: (context: C) => string | undefined;
}

/**
 * Middleware that limits requests. Denied requests are answered here and do not reach the next handler.
 *
 * @throws InvalidOptionError
 */
export function rateLimit<C extends HonoContextLike>({
  peerAddress,
  ...options
}: HonoOptions<C>): (context: C, next: () => Promise<void>) => Promise<FetchResponse | undefined> {
  const limit = limitOf(options);
  return async (context, next) => {
    const verdict = await limit(context, {
      method: context.req.method,
      path: context.req.path,
      peerAddress: peerAddress?.(context),
      header: (name) => context.req.header(name),
    });
    if (!verdict.passes)
      return new Response(verdict.body, { status: verdict.status, headers: verdict.headers });
    if (verdict.waitMillis > 0) await delay(verdict.waitMillis);
    await next();
    // Set the headers after the handler: a response that the handler creates itself would drop earlier ones.
    for (const [name, value] of Object.entries(verdict.headers)) context.header(name, value);
    return undefined;
  };
}
