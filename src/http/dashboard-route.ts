/**
 * `GET /` and `GET /dashboard/{file}`: the dashboard. These static files contain nothing about the cluster, so
 * anybody may have them. The page asks for its data with the user's token.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type DashboardFile, dashboardFiles, INDEX } from './dashboard-files.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { sendAnswer } from './http-answer.ts';
import { formatNoRoute } from './refusals.ts';

/** The path of the route, in Fastify's notation. */
export const DASHBOARD_FILE = '/dashboard/:file';

/** The page may load and run only what this node serves, and no other page may embed it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join('; ');
const HEADERS = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};
/** File names contain a hash of the content, except that of the page itself. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
const HASHED = /-[\w-]{8,}\.(?:js|css)$/;

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  name: string,
  { type, etag, bytes, gzipped }: DashboardFile,
): void {
  const control = HASHED.test(name) ? IMMUTABLE : 'no-cache';
  void reply.headers({ ...HEADERS, etag, 'cache-control': control, vary: 'accept-encoding' });
  if (request.headers['if-none-match'] === etag) {
    void reply.code(304).send();
    return;
  }
  const takesGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  if (takesGzip) void reply.header('content-encoding', 'gzip');
  void reply.type(type).send(takesGzip ? gzipped : bytes);
}

type OfFile = FastifyRequest<{ Params: { file: string } }>;

/** Adds the routes. */
export function addDashboardRoutes(app: FastifyInstance, { node }: HttpListenerInit): void {
  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    name: string,
  ): Promise<FastifyReply> => {
    const file = (await dashboardFiles()).get(name);
    if (node.wantsNoClients()) void reply.header('connection', 'close');
    if (file === undefined) sendAnswer(reply, formatNoRoute(request.method, request.url, []));
    else send(request, reply, name, file);
    return reply;
  };
  app.get('/', async (request, reply) => answer(request, reply, INDEX));
  app.get(DASHBOARD_FILE, async (request: OfFile, reply) => answer(request, reply, request.params.file));
}
