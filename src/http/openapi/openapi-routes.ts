/**
 * `GET /openapi.json` and `GET /docs`: serve `docs/openapi.json` to programs, and as a page to people. The file is
 * read at the first request.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { FastifyInstance } from 'fastify';
import { JSON_TYPE } from '../http-answer.ts';
import type { OpenApiDocument } from './page.ts';

/**
 * The name under which the package exports the file. It resolves both from the sources and from the compiled code.
 */
const NAME = 'quorate/openapi.json';

/**
 * The file and the page made of it. The code that makes the page is also only loaded now, so that nodes start faster.
 */
async function made(): Promise<{ readonly json: string; readonly page: string; readonly policy: string }> {
  const [{ PAGE_POLICY, pageOf }, text] = await Promise.all([
    import('./page.ts'),
    readFile(createRequire(import.meta.url).resolve(NAME), 'utf8'),
  ]);
  const document = JSON.parse(text) as OpenApiDocument;
  return { json: JSON.stringify(document), page: pageOf(document), policy: PAGE_POLICY };
}

/** Adds the routes. */
export function addOpenApiRoutes(app: FastifyInstance): void {
  let last: ReturnType<typeof made> | undefined;
  const once = (): ReturnType<typeof made> =>
    (last ??= made().catch((error: unknown) => {
      last = undefined;
      throw error;
    }));
  app.get('/openapi.json', async (_request, reply) => {
    const { json } = await once();
    void reply.type(JSON_TYPE);
    return json;
  });
  app.get('/docs', async (_request, reply) => {
    const { page, policy } = await once();
    void reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', policy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer');
    return page;
  });
}
