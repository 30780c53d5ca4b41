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

/** What is used of a context of Hono. */
export interface HonoContextLike {
  readonly req: {
    readonly method: string;
    readonly path: string;
    header(name: string): string | undefined;
  };
  header(name: string, value: string): void;
}

export interface HonoOptions<C> extends RateLimitOptions<C> {
  /** The address of the connection, by `getConnInfo` of your platform. Needed by `byIp`. */
  readonly peerAddress?: (context: C) => string | undefined;
}

/** @throws InvalidOptionError */
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
    // Not before: a handler that returns a response of its own would lose them.
    for (const [name, value] of Object.entries(verdict.headers)) context.header(name, value);
    return undefined;
  };
}
