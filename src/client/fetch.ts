/**
 * `@quorate/client/fetch`: limits a handler that takes a `Request` and returns a `Response`, as used by Deno, Bun and
 * others.
 *
 * @example
 * import { QuorateClient } from '@quorate/client';
 * import { byApiKey, rateLimit } from '@quorate/client/fetch';
 * const client = new QuorateClient({ nodes: ['http://127.0.0.1:8101'] });
 * export default { fetch: rateLimit({ client, identify: byApiKey() }, () => new Response('hello')) };
 */
import { setTimeout as delay } from 'node:timers/promises';
import { pathOfUrl } from './middleware/facts.ts';
import { limitOf, type RateLimitOptions } from './middleware/limit.ts';

export * from './middleware/index.ts';

/** The part of a `Request` that the wrapper reads. */
export interface FetchRequestLike {
  readonly method: string;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
}

/** The global `Response` type, or `unknown` in a project whose types do not include it. */
export type FetchResponse = typeof globalThis extends { Response: { prototype: infer T } } ? T : unknown;

/** The options of `rateLimit` for fetch handlers. */
export interface FetchOptions<R, Rest extends readonly unknown[]> extends RateLimitOptions<R> {
  /** Returns the address of the connection, which a `Request` does not contain. `byIp` needs it. */
  readonly peerAddress?: (request: R, ...rest: Rest) => string | undefined;
}

/**
 * Wraps a handler: denied requests are answered here and do not reach it.
 *
 * @throws InvalidOptionError
 */
export function rateLimit<R extends FetchRequestLike, Rest extends readonly unknown[]>(
  { peerAddress, ...options }: FetchOptions<R, Rest>,
  handler: (request: R, ...rest: Rest) => FetchResponse | Promise<FetchResponse>,
): (request: R, ...rest: Rest) => Promise<FetchResponse> {
  const limit = limitOf(options);
  return async (request, ...rest) => {
    const verdict = await limit(request, {
      method: request.method,
      path: pathOfUrl(new URL(request.url).pathname),
      peerAddress: peerAddress?.(request, ...rest),
      header: (name) => request.headers.get(name) ?? undefined,
    });
    if (!verdict.passes)
      return new Response(verdict.body, { status: verdict.status, headers: verdict.headers });
    if (verdict.waitMillis > 0) await delay(verdict.waitMillis);
    const response = await handler(request, ...rest);
    const added = Object.entries(verdict.headers);
    if (added.length === 0) return response;
    // The headers of a response can be immutable, so copy them.
    const headers = new Headers(response.headers);
    for (const [name, value] of added) headers.set(name, value);
    const { status, statusText } = response;
    return new Response(response.body, { status, statusText, headers });
  };
}
