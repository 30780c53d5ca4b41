/** `GET /openapi.json` and `GET /docs`: `docs/openapi.json` for programs and for people. It is read when first asked for. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { FastifyInstance } from 'fastify';
import { JSON_TYPE } from '../http-answer.ts';
import type { OpenApiDocument } from './page.ts';

/** As the package exports it: that leads to it from sources and from what is compiled. */
const NAME = 'quorate/openapi.json';

/** What makes the page is loaded then, too: nodes start without it. */
async function made(): Promise<{ readonly json: string; readonly page: string; readonly policy: string }> {
  const [{ PAGE_POLICY, pageOf }, text] = await Promise.all([
    import('./page.ts'),
    readFile(createRequire(import.meta.url).resolve(NAME), 'utf8'),
  ]);
  const document = JSON.parse(text) as OpenApiDocument;
  return { json: JSON.stringify(document), page: pageOf(document), policy: PAGE_POLICY };
}

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
