/** The HTTP front door. It parses, asks the router, and formats; it makes no decision of its own. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { RoutedAnswer } from '../router/router.ts';
import type { AllowRequest } from '../limiter/request.ts';
import { parseAllowBody } from './allow-request.ts';
import type { NodeChangeResult } from '../meta/meta-group.ts';
import type { NodeChange } from '../meta/meta-state.ts';
import { formatNodesAnswer, isLocal, parseNodesBody } from './nodes-route.ts';
import { formatAnswer, type HttpAnswer } from './answer-format.ts';
import { parseJsonBody } from './json-body.ts';
import type { Readiness } from './readiness.ts';
import {
  BODY_BYTES_MAX,
  EXPECTATION_FAILED,
  formatNoRoute,
  INTERNAL_ERROR,
  NO_HOST,
  owesAnswer,
  parserRefusal,
  refusalOf,
  refuseConnection,
} from './refusals.ts';

/** How long a client may take for what. */
export interface HttpLimits {
  /** For a whole request, from its first byte, and for its headers alone. */
  readonly requestMillis: number;
  /** Between two requests. */
  readonly keepAliveMillis: number;
}

export const HTTP_LIMITS: HttpLimits = { requestMillis: 10_000, keepAliveMillis: 60_000 };
/** How often a late request is looked for, as a part of what it may take. Node's own 30 s would be its real limit. */
const CHECKS_PER_LIMIT = 10;
const ALLOW = '/v1/allow';
const METHODS = ['GET', 'HEAD', 'POST'] as const;

export interface HttpServerInit {
  readonly allow: (request: AllowRequest, done: (answer: RoutedAnswer, partition: number) => void) => void;
  readonly readiness: () => Readiness;
  /** Clients should go elsewhere: every answer is the last one on its connection. */
  readonly wantsNoClients: () => boolean;
  /** The body of `GET /v1/cluster`. */
  readonly cluster: () => unknown;
  readonly changeNodes: (change: NodeChange, done: (result: NodeChangeResult) => void) => void;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  /** Told of every answer of `POST /v1/allow`. */
  readonly observe: (status: number, startedMillis: number) => void;
  readonly monotonicMillis: () => number;
  readonly wallMillis: () => number;
  readonly logger: Logger;
  readonly limits?: HttpLimits;
}

/**
 * Routes: `POST /v1/allow`, `GET /v1/cluster`, `POST /v1/cluster/nodes`, `GET /healthz`, `GET /readyz`, `GET /metrics`.
 * The caller listens and closes.
 */
export function createHttpServer(init: HttpServerInit): FastifyInstance {
  const { requestMillis, keepAliveMillis } = init.limits ?? HTTP_LIMITS;
  /** To the last request of each connection. */
  const responses = new WeakMap<Socket, ServerResponse>();
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: 'idle',
    // Whoever is closing goes on answering what it has.
    return503OnClosing: false,
    requestTimeout: requestMillis,
    keepAliveTimeout: keepAliveMillis,
    http: {
      headersTimeout: requestMillis,
      // Refused below, with a body.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.ceil(requestMillis / CHECKS_PER_LIMIT),
    },
    clientErrorHandler(error, socket) {
      const refusal = parserRefusal(error, { requestMillis });
      refuseConnection(socket, refusal, owesAnswer(responses.get(socket)));
    },
    frameworkErrors: (error, _request, reply) => send(reply, refusalOf(error) ?? INTERNAL_ERROR),
  });
  /** A request for a grant that never came to its route. */
  const refuse = (request: FastifyRequest, reply: FastifyReply, answer: HttpAnswer): void => {
    if (request.routeOptions.url === ALLOW)
      init.observe(answer.status, init.monotonicMillis() - reply.elapsedTime);
    send(reply, answer);
  };
  // Node would answer this one itself, with an empty body.
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'POST' && request.url === ALLOW)
      init.observe(EXPECTATION_FAILED.status, init.monotonicMillis());
    response.writeHead(EXPECTATION_FAILED.status, EXPECTATION_FAILED.headers);
    response.end(JSON.stringify(EXPECTATION_FAILED.body));
  });

  // Only JSON is understood, and only as we read it: by default Fastify replaces bytes that are not UTF-8.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, parseJsonBody(request.headers, bytes));
  });

  app.addHook('onRequest', (request, reply, done) => {
    responses.set(request.raw.socket, reply.raw);
    if (init.wantsNoClients()) void reply.header('connection', 'close');
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      refuse(request, reply, NO_HOST);
    else done();
  });

  app.post(ALLOW, (request, reply) => {
    const startedMillis = init.monotonicMillis();
    // Throws InvalidBodyError, which the error handler below turns into a 400.
    const wanted = parseAllowBody(request.body);
    init.allow(wanted, (answer, partition) => {
      const formatted = formatAnswer(answer, partition, init.wallMillis());
      init.observe(formatted.status, startedMillis);
      // It may have come before.
      if (init.wantsNoClients()) void reply.header('connection', 'close');
      send(reply, formatted);
    });
    return reply;
  });

  app.get('/v1/cluster', (_request, reply) => {
    const readiness = init.readiness();
    if (readiness.status !== 'starting') return init.cluster();
    void reply.code(503);
    return readiness;
  });
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
    const readiness = init.readiness();
    void reply.code(readiness.status === 'ready' ? 200 : 503);
    return readiness;
  });
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await init.metrics();
    void reply.type(contentType);
    return text;
  });

  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    const allowed = METHODS.filter((method) => app.hasRoute({ method, url: path }));
    send(reply, formatNoRoute(request.method, request.url, allowed));
  });
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error);
    if (refusal === undefined) init.logger.error({ err: error }, 'request failed');
    refuse(request, reply, refusal ?? INTERNAL_ERROR);
  });
  return app;
}

function send(reply: FastifyReply, { status, headers, body }: HttpAnswer): void {
  void reply.code(status).headers(headers).send(JSON.stringify(body));
}
