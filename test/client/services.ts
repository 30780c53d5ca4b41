/** Three services as users write them, with Fastify, Express and a `fetch` handler. Each has its own client. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import Fastify from 'fastify';
import { QuorateClient } from '../../src/client/client.ts';
import { byUser, rateLimit as expressLimit } from '../../src/client/express.ts';
import { rateLimit as fastifyLimit } from '../../src/client/fastify.ts';
import { rateLimit as fetchLimit } from '../../src/client/fetch.ts';
import type { ClientEvent } from '../../src/client/events.ts';

export interface Service {
  readonly name: string;
  readonly origin: string;
  readonly events: readonly ClientEvent[];
  readonly stop: () => Promise<void>;
}

interface Options {
  readonly nodes: readonly string[];
  readonly rule: string;
}

type Listened = { readonly origin: string; readonly close: () => Promise<unknown> };

const USER = 'x-user';
const byHeader = byUser(
  ({ headers }: { headers: Readonly<Record<string, string | readonly string[] | undefined>> }) =>
    headers[USER]?.toString(),
);

export async function startServices(options: Options): Promise<Service[]> {
  return Promise.all([
    start('fastify', options, async (limited) => {
      const app = Fastify();
      app.get('/', { onRequest: fastifyLimit({ ...limited, identify: byHeader }) }, () => 'hello');
      return { origin: await app.listen({ port: 0, host: '127.0.0.1' }), close: async () => app.close() };
    }),
    start('express', options, async (limited) => {
      const app = express();
      app.get(
        '/',
        expressLimit({ ...limited, identify: byHeader }),
        (_, response) => void response.send('hello'),
      );
      return listen(createServer(app));
    }),
    start('fetch', options, async (limited) => {
      const identify = byUser(({ headers }: Request) => headers.get(USER) ?? undefined);
      const handler = fetchLimit({ ...limited, identify }, () => new Response('hello'));
      return listen(
        createServer((request, response) => {
          const headers = new Headers({ [USER]: String(request.headers[USER]) });
          void handler(new Request('http://service/', { headers })).then(async (answer) => {
            const { status, headers } = answer;
            response.writeHead(status, Object.fromEntries(headers));
            response.end(await answer.text());
          });
        }),
      );
    }),
  ]);
}

async function start(
  name: string,
  { nodes, rule }: Options,
  serve: (limited: { readonly client: QuorateClient; readonly rule: string }) => Promise<Listened>,
): Promise<Service> {
  const events: ClientEvent[] = [];
  const client = new QuorateClient({ nodes, deadlineMillis: 10_000, onEvent: (event) => events.push(event) });
  const { origin, close } = await serve({ client, rule });
  return {
    name,
    origin,
    events,
    stop: async () => {
      await close();
      client.close();
    },
  };
}

async function listen(server: Server): Promise<Listened> {
  // The users run in this process, too. With Node's timeout of five seconds, a pause of the process would close the
  // connection of the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<unknown> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
