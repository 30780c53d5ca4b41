/**
 * The documentation, served by the node itself so that it works offline and fits the version that runs.
 * `GET /docs` is the index, `GET /docs/{page}.md` a page of `docs/`, `GET /docs/api` the HTTP API as a page, and
 * `GET /openapi.json` the same for programs. Files are read when they are first asked for; nodes start without them.
 */
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { JSON_TYPE } from '../http-answer.ts';
import type { OpenApiDocument } from './api-page.ts';

/** The package exports this file: its name leads to `docs/` from the sources and from what is compiled. */
const NAME = 'quorate/openapi.json';
const INDEX = 'README.md';

interface Docs {
  readonly json: string;
  readonly apiPage: string;
  /** The HTML of the page at a path below `docs/`; undefined if there is none. */
  readonly page: (path: string) => string | undefined;
  readonly policy: string;
}

async function readDocs(): Promise<Docs> {
  const path = createRequire(import.meta.url).resolve(NAME);
  const [{ PAGE_POLICY }, { apiPage }, { markdownPage }, json, names] = await Promise.all([
    import('./html.ts'),
    import('./api-page.ts'),
    import('./markdown-page.ts'),
    readFile(path, 'utf8'),
    readdir(dirname(path), { recursive: true }),
  ]);
  const document = JSON.parse(json) as OpenApiDocument;
  const texts = new Map(
    await Promise.all(
      names
        .filter((name) => name.endsWith('.md'))
        .map(async (name): Promise<[string, string]> => [
          name,
          await readFile(join(dirname(path), name), 'utf8'),
        ]),
    ),
  );
  const pages = new Set(texts.keys());
  // One page at a time and only once: to render all of them together would hold up the requests that the node decides.
  const rendered = new Map<string, string>();
  return {
    json: JSON.stringify(document),
    apiPage: apiPage(document),
    page(name) {
      const text = texts.get(name);
      if (text === undefined) return undefined;
      const html = rendered.get(name) ?? markdownPage(text, { path: name, pages });
      rendered.set(name, html);
      return html;
    },
    policy: PAGE_POLICY,
  };
}

/** Adds the routes. */
export function addDocsRoutes(app: FastifyInstance): void {
  let last: Promise<Docs> | undefined;
  const once = (): Promise<Docs> =>
    (last ??= readDocs().catch((error: unknown) => {
      last = undefined;
      throw error;
    }));
  app.get('/openapi.json', async (_request, reply) => {
    const { json } = await once();
    void reply.type(JSON_TYPE);
    return json;
  });
  app.get('/docs', (_request, reply) => reply.redirect(`/docs/${INDEX}`));
  app.get('/docs/api', async (_request, reply) => {
    const { apiPage, policy } = await once();
    return sent(reply, apiPage, policy);
  });
  app.get<{ Params: { readonly '*': string } }>('/docs/*', async ({ params }, reply) => {
    const { page: pageAt, policy } = await once();
    const page = pageAt(params['*']);
    if (page === undefined) {
      reply.callNotFound();
      return reply;
    }
    return sent(reply, page, policy);
  });
}

function sent(reply: FastifyReply, page: string, policy: string): string {
  void reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('x-content-type-options', 'nosniff')
    .header('referrer-policy', 'no-referrer');
  return page;
}
