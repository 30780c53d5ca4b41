/** What middleware answers, in all frameworks alike: headers in every form, denials, fail modes, and what is let through. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify, { type FastifyRequest } from 'fastify';
import { type Context, Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import type { QuorateClient } from '../../src/client/client.ts';
import {
  IndefiniteError,
  InvalidRequestError,
  RefusedError,
  UnavailableError,
} from '../../src/client/errors.ts';
import { rateLimit as expressLimit } from '../../src/client/express.ts';
import { rateLimit as fastifyLimit } from '../../src/client/fastify.ts';
import { rateLimit as fetchLimit } from '../../src/client/fetch.ts';
import { rateLimit as honoLimit } from '../../src/client/hono.ts';
import type { RequestFacts } from '../../src/client/middleware/facts.ts';
import { byApiKey, byUser, type Identifier } from '../../src/client/middleware/index.ts';
import { limitOf, type RateLimitOptions } from '../../src/client/middleware/limit.ts';
import type { PermitAnswer, PermitRequest } from '../../src/client/permit.ts';

const DECIDED = { partition: 0, term: 1, index: 1, timeMillis: 1 };
const LIMIT = {
  rule: 'default',
  limit: 100,
  windowMillis: 60_000,
  remaining: 42,
  resetMillis: 59_001,
  rulesVersion: 1,
};
const GRANT = { kind: 'granted', allowed: true, ...LIMIT, decided: DECIDED } as const satisfies PermitAnswer;
const DENIAL: PermitAnswer = {
  kind: 'denied',
  allowed: false,
  ...LIMIT,
  remaining: 0,
  retryAfterMillis: 12_345,
  isCached: false,
  decided: DECIDED,
};
const FACTS: RequestFacts = { method: 'GET', path: '/', peerAddress: '1.2.3.4', header: () => undefined };
const WALL_MILLIS = 1_700_000_000_123;

const nobody: Identifier<object> = () => undefined;

class Answering implements Pick<QuorateClient, 'allow'> {
  readonly asked: PermitRequest[] = [];
  answer: PermitAnswer | Error = GRANT;

  async allow(request: PermitRequest): Promise<PermitAnswer> {
    this.asked.push(request);
    if (this.answer instanceof Error) throw this.answer;
    return this.answer;
  }
}

interface Asking {
  readonly user?: string;
}

async function verdictOf(
  answer: PermitAnswer | Error,
  options: Partial<RateLimitOptions<Asking>> = {},
): Promise<Awaited<ReturnType<ReturnType<typeof limitOf<Asking>>>>> {
  const client = new Answering();
  client.answer = answer;
  const identify = options.descriptors === undefined ? { identify: ({ user }: Asking) => user } : {};
  return limitOf<Asking>({ client, ...identify, ...options }, () => WALL_MILLIS)({ user: 'ada' }, FACTS);
}

describe('headers', () => {
  it('of a grant tell how the client stands, in each form', async () => {
    const x = {
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': '42',
      'x-ratelimit-reset': '1700000060',
      'x-ratelimit-policy': '100;w=60',
      'x-ratelimit-rule': 'default',
    };
    const draft = { ratelimit: '"default";r=42;t=60', 'ratelimit-policy': '"default";q=100;w=60' };
    expect((await verdictOf(GRANT)).headers).toEqual({ ...x, ...draft });
    expect((await verdictOf(GRANT, { headers: ['x'] })).headers).toEqual(x);
    expect((await verdictOf(GRANT, { headers: ['draft'] })).headers).toEqual(draft);
    expect((await verdictOf(GRANT, { headers: ['draft6'] })).headers).toEqual({
      'ratelimit-limit': '100',
      'ratelimit-remaining': '42',
      'ratelimit-reset': '60',
      'ratelimit-policy': '100;w=60',
    });
    expect((await verdictOf(GRANT, { headers: [] })).headers).toEqual({});
  });

  it('of a denial say when to come back, in every form', async () => {
    for (const headers of [['x'], ['draft6'], ['draft'], []] as const)
      expect((await verdictOf(DENIAL, { headers })).headers).toMatchObject({ 'retry-after': '13' });
    const { headers } = await verdictOf(DENIAL, { headers: ['draft6', 'draft'] });
    expect(headers).toMatchObject({ ratelimit: '"default";r=0;t=13', 'ratelimit-reset': '13' });
  });

  it('do without a window that an older node does not tell', async () => {
    const { windowMillis, ...answer } = GRANT;
    expect(windowMillis).toBe(60_000);
    expect((await verdictOf(answer)).headers).toMatchObject({
      'x-ratelimit-policy': '100',
      'ratelimit-policy': '"default";q=100',
    });
  });
});

describe('an answer', () => {
  it('to a denial is 429 with the body of the cluster, or the one that is wanted', async () => {
    const usual = await verdictOf(DENIAL);
    expect(usual).toMatchObject({ passes: false, status: 429 });
    expect(JSON.parse('body' in usual ? usual.body : '')).toEqual({
      error: {
        type: 'rate_limit_error',
        message: 'Rate limit of 100 per 60s exceeded. Retry after 13 s.',
        retry_after: 13,
        limit: 100,
        window: '60s',
      },
    });
    const text = await verdictOf(DENIAL, { body: () => 'Too many.' });
    expect(text).toMatchObject({
      body: 'Too many.',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
    expect(await verdictOf(DENIAL, { body: (_, { user }) => ({ user }) })).toMatchObject({
      body: '{"user":"ada"}',
    });
  });

  it('to a block is 403 without a time to come back', async () => {
    const verdict = await verdictOf({ kind: 'blocked', allowed: false, decided: DECIDED });
    expect(verdict).toMatchObject({ passes: false, status: 403 });
    expect(verdict.headers).not.toHaveProperty('retry-after');
  });

  it.each([
    new UnavailableError('no_leader'),
    new IndefiniteError('no_answer'),
    new RefusedError(401, 'token'),
  ])('where nobody decided (%s) is 503, and never lets through', async (error) => {
    const seen: unknown[] = [];
    const verdict = await verdictOf(error, { onError: (each) => seen.push(each) });
    expect(verdict).toMatchObject({ passes: false, status: 503, headers: { 'retry-after': '1' } });
    expect(seen).toEqual([error]);
  });

  it('to who cannot be identified is 400, and nothing is asked', async () => {
    const client = new Answering();
    expect(await limitOf({ client, identify: nobody })({}, FACTS)).toMatchObject({
      passes: false,
      status: 400,
    });
    expect(await limitOf({ client, descriptors: { user: nobody } })({}, FACTS)).toMatchObject({
      status: 400,
    });
    expect(client.asked).toEqual([]);
  });

  it('to a mistake of the service is for its framework', async () => {
    const error = new InvalidRequestError('cost', 'cost must be an integer from 1 to 100');
    await expect(verdictOf(error)).rejects.toBe(error);
    await expect(
      verdictOf(GRANT, {
        cost: () => {
          throw new TypeError('mine');
        },
      }),
    ).rejects.toThrow('mine');
  });

  it('to what a fail mode lets through has no headers, and to what it denies has a time to come back', async () => {
    const degraded = { kind: 'degraded', by: 'client' } as const;
    expect(await verdictOf({ ...degraded, allowed: true })).toEqual({
      passes: true,
      headers: {},
      waitMillis: 0,
    });
    const denied = await verdictOf({ ...degraded, allowed: false, retryAfterMillis: 1_500 });
    expect(denied).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
  });

  it('to a grant that has to queue waits', async () => {
    expect(await verdictOf({ ...GRANT, waitMillis: 70 })).toMatchObject({ passes: true, waitMillis: 70 });
  });
});

describe('what is asked', () => {
  it('has cost, rule and fail mode of the route', async () => {
    const client = new Answering();
    const options = {
      client,
      identify: () => 'ada',
      cost: () => 5,
      rule: () => 'reports',
      failMode: 'open',
    } as const;
    await limitOf(options)({}, FACTS);
    await limitOf({ client, descriptors: { ip: () => '1.2.3.4', user: () => undefined } })({}, FACTS);
    expect(client.asked).toEqual([
      { userId: 'ada', cost: 5, rule: 'reports', failMode: 'open' },
      { descriptors: { ip: '1.2.3.4' }, cost: undefined, failMode: undefined },
    ]);
  });

  it('is nothing of what is skipped', async () => {
    const client = new Answering();
    client.answer = DENIAL;
    const verdict = await limitOf({ client, identify: () => 'ada', skip: async () => true })({}, FACTS);
    expect([verdict.passes, client.asked]).toEqual([true, []]);
  });

  it('in shadow is counted and told, and everything passes without headers', async () => {
    const denied: PermitAnswer[] = [];
    const shadow = { shadow: true, onDenied: (answer: PermitAnswer) => denied.push(answer) };
    const passes = { passes: true, headers: {}, waitMillis: 0 };
    expect(await verdictOf(DENIAL, shadow)).toEqual(passes);
    expect(await verdictOf(new UnavailableError('no_leader'), shadow)).toEqual(passes);
    expect(await verdictOf(new InvalidRequestError('rule', 'm'), shadow)).toEqual(passes);
    expect(denied).toEqual([DENIAL]);
  });

  it.each<[object, string]>([
    [{ identify: () => 'ada' }, 'client'],
    [{ client: new Answering() }, 'identify'],
    [{ client: new Answering(), identify: () => 'a', descriptors: {} }, 'identify'],
    [{ client: new Answering(), descriptors: {}, rule: 'r' }, 'rule'],
    [{ client: new Answering(), identify: () => 'a', headers: ['y'] }, 'headers'],
  ])('options %# are refused by their name', (options, field) => {
    expect(() => limitOf(options as never)).toThrow(expect.objectContaining({ field }));
  });
});

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
    const peerAddress = (_: Request, info: { readonly remote: string }): string => info.remote;
    const handler = fetchLimit({ client, identify: ofFetch, peerAddress }, () => new Response('hello'));
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

  it('a denial does not, and says when to come back', async () => {
    const client = new Answering();
    client.answer = DENIAL;
    const seen = await of(client)(key);
    expect(seen.status).toBe(429);
    expect(seen.headers).toMatchObject({ 'retry-after': '13', 'x-ratelimit-remaining': '0' });
    expect(JSON.parse(seen.text)).toMatchObject({ error: { type: 'rate_limit_error' } });
  });

  it('what nobody decided does not', async () => {
    const client = new Answering();
    client.answer = new UnavailableError('no_leader');
    const seen = await of(client)(key);
    expect(seen.status).toBe(503);
    expect(String(seen.headers['content-type'])).toContain('application/problem+json');
  });

  it('who shows no key is refused', async () => {
    expect((await of(new Answering())({})).status).toBe(400);
  });
});
