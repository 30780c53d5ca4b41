/** Tests the same limit in Fastify, Express, Hono and a `fetch` handler, including their types. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify, { type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { UnavailableError } from '../../src/client/errors.ts';
import { rateLimit as expressLimit } from '../../src/client/express.ts';
import { rateLimit as fastifyLimit } from '../../src/client/fastify.ts';
import { rateLimit as fetchLimit } from '../../src/client/fetch.ts';
import { rateLimit as honoLimit } from '../../src/client/hono.ts';
import { byApiKey, byUser } from '../../src/client/middleware/index.ts';
import { Answering, DENIAL } from './answering.ts';

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

type Ask = (headers: Record<string, string>) => Promise<Seen>;

async function seenOf(response: Response): Promise<Seen> {
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: await response.text(),
  };
}

async function overHttp(listener: RequestListener, ask: (origin: string) => Promise<Seen>): Promise<Seen> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** A route of each framework that says hello, limited by API keys. */
const FRAMEWORKS: Readonly<Record<string, (client: Answering) => Ask>> = {
  fastify: (client) => async (headers) => {
    const app = Fastify();
    app.get('/', { onRequest: fastifyLimit({ client, identify: byApiKey() }) }, () => 'hello');
    const { statusCode, headers: answered, body } = await app.inject({ url: '/', headers });
    await app.close();
    return { status: statusCode, headers: answered, text: body };
  },
  express: (client) => async (headers) => {
    const app = express();
    app.get(
      '/',
      expressLimit({ client, identify: byApiKey() }),
      (_, response) => void response.send('hello'),
    );
    app.use(
      (_: unknown, __: unknown, response: express.Response, ___: unknown) =>
        void response.status(500).end('failed'),
    );
    return overHttp(app, async (origin) => seenOf(await fetch(origin, { headers })));
  },
  fetch: (client) => async (headers) => {
    const handler = fetchLimit({ client, identify: byApiKey() }, () => Response.json('hello'));
    return seenOf(await handler(new Request('http://here/', { headers })));
  },
  hono: (client) => async (headers) => {
    const app = new Hono();
    app.use(honoLimit({ client, identify: byApiKey() }));
    app.get('/', () => new Response('hello'));
    return seenOf(await app.request('/', { headers }));
  },
};

function remoteOf(_: Request, info: { readonly remote: string }): string {
  return info.remote;
}

describe('an identifier', () => {
  it('may use the request of its framework, with its types', async () => {
    const client = new Answering();
    const fastify = Fastify();
    const ofFastify = byUser((request: FastifyRequest) => request.headers['x-user']?.toString());
    fastify.get('/', { preHandler: fastifyLimit({ client, identify: ofFastify }) }, () => 'hello');
    const ofExpress = byUser((request: express.Request) => request.get('x-user'));
    const limitExpress = expressLimit({ client, identify: ofExpress, cost: (request) => request.url.length });
    const ofHono = byUser((context: Context) => context.req.query('user'));
    const hono = new Hono().use(honoLimit({ client, identify: ofHono, peerAddress: () => '1.2.3.4' }));
    const ofFetch = byUser((request: Request) => request.headers.get('x-user') ?? undefined);
    const handler = fetchLimit(
      { client, identify: ofFetch, peerAddress: remoteOf },
      () => new Response('hello'),
    );
    express().use(limitExpress);
    await fastify.inject({ url: '/', headers: { 'x-user': 'cy' } });
    await hono.request('/?user=ada');
    await handler(new Request('http://here/', { headers: { 'x-user': 'bob' } }), { remote: '1.2.3.4' });
    await fastify.close();
    expect(client.asked.map(({ userId }) => userId)).toEqual(['user:cy', 'user:ada', 'user:bob']);
  });
});

describe.each(Object.entries(FRAMEWORKS))('with %s', (_, of) => {
  const key = { 'x-api-key': 'secret' };

  it('a grant goes through, with headers', async () => {
    const client = new Answering();
    const seen = await of(client)(key);
    expect(seen.status).toBe(200);
    expect(seen.text).toContain('hello');
    expect(seen.headers).toMatchObject({ 'x-ratelimit-remaining': '42', ratelimit: '"default";r=42;t=60' });
    expect(client.asked).toHaveLength(1);
  });

  it('a denial is 429, and says when to retry', async () => {
    const client = new Answering();
    client.answer = DENIAL;
    const seen = await of(client)(key);
    expect(seen.status).toBe(429);
    expect(seen.headers).toMatchObject({ 'retry-after': '13', 'x-ratelimit-remaining': '0' });
    expect(JSON.parse(seen.text)).toMatchObject({ error: { type: 'rate_limit_error' } });
  });

  it('a request that no node decided is 503', async () => {
    const client = new Answering();
    client.answer = new UnavailableError('no_leader');
    const seen = await of(client)(key);
    expect(seen.status).toBe(503);
    expect(String(seen.headers['content-type'])).toContain('application/problem+json');
  });

  it('a request without a key is refused', async () => {
    expect((await of(new Answering())({})).status).toBe(400);
  });
});
