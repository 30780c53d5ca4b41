/** `GET /openapi.json` and `GET /docs`: what this door takes and answers, for programs and for people. Both are made when first asked for. */
import type { FastifyInstance } from 'fastify';
import { JSON_TYPE } from '../http-answer.ts';

/** What both are made of is loaded then, too: nodes start without it. */
async function made(): Promise<{ readonly json: string; readonly page: string; readonly policy: string }> {
  const [{ openApiDocument }, { PAGE_POLICY, pageOf }] = await Promise.all([
    import('./document.ts'),
    import('./page.ts'),
  ]);
  const document = openApiDocument();
  return { json: JSON.stringify(document), page: pageOf(document), policy: PAGE_POLICY };
}

export function addOpenApiRoutes(app: FastifyInstance): void {
  let both: ReturnType<typeof made> | undefined;
  app.get('/openapi.json', async (_request, reply) => {
    const { json } = await (both ??= made());
    void reply.type(JSON_TYPE);
    return json;
  });
  app.get('/docs', async (_request, reply) => {
    const { page, policy } = await (both ??= made());
    void reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', policy)
      .header('x-content-type-options', 'nosniff')
      .header('referrer-policy', 'no-referrer');
    return page;
  });
}
