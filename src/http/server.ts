/** The HTTP front door. It parses, asks the router, and formats; it makes no decision of its own. */
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import type { Logger } from 'pino';
import type { RoutedAnswer } from '../router/router.ts';
import type { AllowRequest } from '../limiter/request.ts';
import { InvalidBodyError, parseAllowBody } from './allow-request.ts';
import type { NodeChangeResult } from '../meta/meta-group.ts';
import type { NodeChange } from '../meta/meta-state.ts';
import type { NodeStanding } from '../meta/standing.ts';
import { formatNodesAnswer, isLocal, parseNodesBody } from './nodes-route.ts';
import { formatAnswer, formatInvalid, type HttpAnswer } from './answer-format.ts';

/** Far above what any valid request needs. */
const BODY_BYTES_MAX = 8_192;

export interface HttpServerInit {
  readonly allow: (request: AllowRequest, done: (answer: RoutedAnswer, partition: number) => void) => void;
  readonly isReady: () => boolean;
  readonly standing: () => NodeStanding;
  /** The body of `GET /v1/cluster`. */
  readonly cluster: () => unknown;
  readonly changeNodes: (change: NodeChange, done: (result: NodeChangeResult) => void) => void;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly observe: (status: number, startedMillis: number) => void;
  readonly monotonicMillis: () => number;
  readonly wallMillis: () => number;
  readonly logger: Logger;
}

/**
 * Routes: `POST /v1/allow`, `GET /v1/cluster`, `POST /v1/cluster/nodes`, `GET /healthz`, `GET /readyz`, `GET /metrics`.
 * The caller listens and closes.
 */
export function createHttpServer(init: HttpServerInit): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: 'idle',
    requestTimeout: 10_000,
    keepAliveTimeout: 60_000,
  });

  // Only JSON is understood: by default Fastify also takes text.
  app.removeContentTypeParser('text/plain');

  app.post('/v1/allow', (request, reply) => {
    const startedMillis = init.monotonicMillis();
    // Throws InvalidBodyError, which the error handler below turns into a 400.
    const wanted = parseAllowBody(request.body);
    init.allow(wanted, (answer, partition) => {
      const formatted = formatAnswer(answer, partition, init.wallMillis());
      init.observe(formatted.status, startedMillis);
      send(reply, formatted);
    });
    return reply;
  });

  app.get('/v1/cluster', () => init.cluster());
  app.post('/v1/cluster/nodes', (request, reply) => {
    if (!isLocal(request.socket, request.headers)) {
      const message =
        'nodes are added and removed from the machine of the node that is asked, by no browser or proxy';
      return reply.code(403).send({ error: { type: 'forbidden', message } });
    }
    const change = parseNodesBody(request.body);
    init.changeNodes(change, (result) => {
      const { status, headers, body } = formatNodesAnswer(result);
      init.logger.info(
        { change, status, ...(typeof body === 'object' && body) },
        'change of the nodes asked for',
      );
      void reply.code(status).headers(headers).send(body);
    });
    return reply;
  });
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const isReady = init.isReady();
    void reply.code(isReady ? 200 : 503);
    return isReady ? { status: 'ready' } : readinessOf(init.standing());
  });
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await init.metrics();
    void reply.type(contentType);
    return text;
  });

  app.setNotFoundHandler((request, reply) => {
    void reply
      .code(404)
      .send({ error: { type: 'not_found', message: `no route ${request.method} ${request.url}` } });
  });
  app.setErrorHandler((error, _request, reply) => {
    const refusal = refusalOf(error);
    if (refusal !== undefined) {
      send(reply, refusal.answer, refusal.status);
      return;
    }
    init.logger.error({ err: error }, 'request failed');
    void reply.code(500).send({ allowed: false, error: { type: 'internal', message: 'internal error' } });
  });
  return app;
}

function readinessOf(standing: NodeStanding): { readonly status: string; readonly reason?: string } {
  switch (standing.state) {
    case 'waiting':
      return { status: 'waiting to be added' };
    case 'member':
      return { status: 'waiting for leaders' };
    case 'removed':
    case 'refused':
      return { status: standing.state, reason: standing.reason };
  }
}

function send(reply: FastifyReply, { status, headers, body }: HttpAnswer, code: number = status): void {
  void reply.code(code).headers(headers).send(JSON.stringify(body));
}

/** Errors that are the caller's: ours, and those Fastify raises while it reads the request. */
function refusalOf(error: unknown): { answer: HttpAnswer; status: number } | undefined {
  if (error instanceof InvalidBodyError)
    return { answer: formatInvalid(error.field, error.message), status: 400 };
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  const { statusCode } = error;
  if (typeof statusCode !== 'number' || statusCode < 400 || statusCode > 499) return undefined;
  const message =
    statusCode === 413
      ? `body must be at most ${BODY_BYTES_MAX} bytes`
      : statusCode === 415
        ? 'body must be JSON, with content-type: application/json'
        : `body cannot be read: ${error.message}`;
  return { answer: formatInvalid('body', message), status: statusCode };
}
