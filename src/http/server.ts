/**
 * The HTTP server: reads and refuses requests in the same way for all routes, and adds the routes. Each route has its
 * own file.
 */
import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { addAllowRoute, ALLOW } from './allow-route.ts';
import { addBackupRoute, ONE_BACKUP } from './backup-route.ts';
import { addBatchRoute } from './batch-route.ts';
import {
  addCustomersRoutes,
  addKeyChangesRoutes,
  BLOCK,
  CUSTOMER,
  KEY_BLOCK,
  KEY_RESET,
  KEY_USED,
  RESET,
  USED,
} from './customers-route.ts';
import { directAllow } from './direct-allow.ts';
import { addDashboardRoutes, DASHBOARD_FILE } from './dashboard-route.ts';
import { addEventsRoute } from './events-route.ts';
import { addDebugRoutes } from './debug-route.ts';
import { refusalOfCaller } from './callers.ts';
import { addClusterRoutes, DRAIN, LABELS } from './cluster-routes.ts';
import { HTTP_LIMITS, type HttpListenerInit, type HttpLimits } from './http-listener-init.ts';
import { addForwardAuthRoute } from './forward-auth-route.ts';
import { GRANT_ROUTES, maybeShed } from './shedding.ts';
import { type HttpAnswer, sendAnswer } from './http-answer.ts';
import { parseJsonBody } from './json-body.ts';
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
import { addRlsRoute, refusedInText, RLS_JSON } from './rls-route.ts';
import { addDocsRoutes } from './docs/docs-routes.ts';
import { addRulesRoutes, ONE_RULE } from './rules-route.ts';
import { addStatusRoutes, addUsageRoute } from './status-routes.ts';
import { addTokensRoutes, ONE_TOKEN } from './tokens-route.ts';
import { addRefundsRoute } from './refunds-route.ts';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { LiveCredentials } from '../tls/live-credentials.ts';
import { listenerOptions } from '../tls/handshakes.ts';
import { addUsersRoute, KEY, REFUNDS, USER, USER_LENGTH_MAX } from './users-route.ts';

/**
 * How often Node looks for late requests within their time limit. By default it looks every 30 s, so that a shorter
 * limit would last up to 30 s.
 */
const CHECKS_PER_LIMIT = 10;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'] as const;
/**
 * Paths that contain a name, and the path of each route in Fastify's notation. Used to list the allowed methods in a
 * 405 response.
 */
const NAMED: readonly (readonly [RegExp, string])[] = [
  [/^\/v1\/keys\/[^/]+$/, KEY],
  [/^\/v1\/users\/[^/]+$/, USER],
  [/^\/v1\/users\/[^/]+\/refunds$/, REFUNDS],
  [/^\/v1\/users\/[^/]+\/block$/, BLOCK],
  [/^\/v1\/users\/[^/]+\/reset$/, RESET],
  [/^\/v1\/users\/[^/]+\/used$/, USED],
  [/^\/v1\/keys\/[^/]+\/used$/, KEY_USED],
  [/^\/v1\/keys\/[^/]+\/block$/, KEY_BLOCK],
  [/^\/v1\/keys\/[^/]+\/reset$/, KEY_RESET],
  [/^\/v1\/customers\/[^/]+$/, CUSTOMER],
  [/^\/v1\/cluster\/nodes\/[^/]+\/drain$/, DRAIN],
  [/^\/v1\/cluster\/nodes\/[^/]+\/labels$/, LABELS],
  [/^\/v1\/rules\/.+$/, ONE_RULE],
  [/^\/v1\/tokens\/[^/]+$/, ONE_TOKEN],
  [/^\/v1\/backup\/[^/]+$/, ONE_BACKUP],
  [/^\/dashboard\/[^/]+$/, DASHBOARD_FILE],
];
/**
 * The form of all other paths. Fastify's `hasRoute` reads its argument as a pattern (`:name`, `*`), so it must not get
 * paths with other characters: some are invalid patterns.
 */
const PLAIN_PATH = /^[\w/.-]+$/;

/** The response to the latest request of each connection. */
type Responses = WeakMap<Socket, ServerResponse>;

/** Creates the server with all routes of `ROUTE_ROLES`. The caller makes it listen and closes it. */
export function createHttpServer(init: HttpListenerInit): FastifyInstance {
  const responses: Responses = new WeakMap();
  const app = newServer(init, responses);
  /** Refuses a request that has not reached its route, and counts it if it asked for a grant. */
  const refuse = (request: FastifyRequest, reply: FastifyReply, answer: HttpAnswer): void => {
    if (GRANT_ROUTES.has(request.routeOptions.url))
      init.observe(answer.status, init.monotonicMillis() - reply.elapsedTime);
    if (request.routeOptions.url !== RLS_JSON) return sendAnswer(reply, answer);
    const { status, headers, text } = refusedInText(answer);
    void reply.code(status).headers(headers).send(text);
  };
  boundConnections(app, init);
  refuseExpectations(app, init);

  app.addHook('onRequest', (request, reply, done) => {
    responses.set(request.raw.socket, reply.raw);
    if (init.node.wantsNoClients()) void reply.header('connection', 'close');
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      return refuse(request, reply, NO_HOST);
    const refusal = refusalOfCaller(request, reply, init);
    if (refusal !== undefined) return refuse(request, reply, refusal);
    if (!maybeShed(request, reply, init)) done();
  });
  // Only JSON is understood (and YAML by the route of the rules), and only with our own decoder: Fastify's replaces
  // bytes that are not UTF-8.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, bytes: Buffer, done) => {
    done(null, parseJsonBody(request.headers, bytes));
  });

  addAllowRoute(app, init);
  addBatchRoute(app, init);
  addRlsRoute(app, init);
  addForwardAuthRoute(app, init);
  addUsersRoute(app, init);
  addCustomersRoutes(app, init);
  addKeyChangesRoutes(app, init);
  addRefundsRoute(app, init);
  addUsageRoute(app, init);
  addClusterRoutes(app, init);
  addRulesRoutes(app, init);
  addTokensRoutes(app, init);
  addBackupRoute(app, init);
  addDebugRoutes(app, init);
  addStatusRoutes(app, init);
  addEventsRoute(app, init);
  addDashboardRoutes(app, init);
  addDocsRoutes(app);

  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.url.split('?', 1);
    const [, named] = NAMED.find(([form]) => form.test(path)) ?? [];
    const url = named ?? (PLAIN_PATH.test(path) ? path : undefined);
    const allowed = url === undefined ? [] : METHODS.filter((method) => app.hasRoute({ method, url }));
    sendAnswer(reply, formatNoRoute(request.method, request.url, allowed));
  });
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error, request.routeOptions.bodyLimit);
    if (refusal === undefined) init.logger.error({ err: error }, 'request failed');
    refuse(request, reply, refusal ?? INTERNAL_ERROR);
  });
  answerDirectly(app, init, responses);
  return app;
}

/** Puts the fast path of direct-allow.ts before Fastify, which handles all other requests. */
function answerDirectly(app: FastifyInstance, init: HttpListenerInit, responses: Responses): void {
  const { server } = app;
  const [others] = server.listeners('request') as RequestListener[];
  if (others === undefined) throw new TypeError('Fastify listens to its server from the beginning');
  server.removeListener('request', others);
  server.on(
    'request',
    directAllow(init, others, ({ socket }, response) => responses.set(socket, response)),
  );
}

/** No route has a schema. Loading Fastify's own compilers would take about 60 ms of a node's start. */
function compileNoSchema(): never {
  throw new TypeError('routes have no schemas: what a request may hold is checked by src/api');
}

/** Closes a connection above the bound at once, without a response, which would cost as much as a normal one. */
function boundConnections(app: FastifyInstance, { accepted, limits = HTTP_LIMITS }: HttpListenerInit): void {
  const addresses = new AddressCounts(limits.connectionsPerAddressMax);
  app.server.maxConnections = limits.connectionsMax;
  app.server.on('connection', (socket: Socket) => {
    accepted();
    const address = socket.remoteAddress ?? '?';
    if (addresses.maybeEnter(address)) socket.once('close', () => addresses.left(address));
    else socket.destroy();
  });
}

function newServer(
  { limits = HTTP_LIMITS, settings, tls }: HttpListenerInit,
  responses: Responses,
): FastifyInstance {
  const { requestMillis } = limits;
  const { keepAliveMillis = limits.keepAliveMillis } = settings();
  const http = serverOptions({ requestMillis, keepAliveMillis });
  return Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    schemaController: {
      compilersFactory: { buildValidator: compileNoSchema, buildSerializer: compileNoSchema },
    },
    routerOptions: { maxParamLength: USER_LENGTH_MAX },
    forceCloseConnections: 'idle',
    // A server that is closing still answers the requests it has.
    return503OnClosing: false,
    requestTimeout: requestMillis,
    keepAliveTimeout: keepAliveMillis,
    http,
    // With `localhost`, a server of our own listens on one address. Fastify would listen on all of them, with extra
    // servers that would keep the old certificate.
    ...(tls !== undefined && {
      serverFactory: (handler: RequestListener) => secureServer(handler, http, tls),
    }),
    clientErrorHandler(error, socket) {
      const refusal = parserRefusal(error, { requestMillis });
      refuseConnection(socket, refusal, owesAnswer(responses.get(socket)));
    },
    frameworkErrors: (error, _request, reply) => sendAnswer(reply, refusalOf(error) ?? INTERNAL_ERROR),
  });
}

function serverOptions({
  requestMillis,
  keepAliveMillis,
}: Pick<HttpLimits, 'requestMillis' | 'keepAliveMillis'>): ServerOptions {
  return {
    headersTimeout: requestMillis,
    requestTimeout: requestMillis,
    keepAliveTimeout: keepAliveMillis,
    // The first hook refuses such a request, with a body.
    requireHostHeader: false,
    connectionsCheckingInterval: Math.ceil(requestMillis / CHECKS_PER_LIMIT),
  };
}

/** The TLS server; Fastify treats it like one without TLS. */
function secureServer(handler: RequestListener, options: ServerOptions, tls: LiveCredentials): Server {
  return createServer({ ...options, ...listenerOptions(tls) }, handler);
}

/** Node itself would answer an unknown expectation with an empty body. */
function refuseExpectations(app: FastifyInstance, { observe, monotonicMillis }: HttpListenerInit): void {
  const { status, headers, body } = EXPECTATION_FAILED;
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'POST' && request.url === ALLOW) observe(status, monotonicMillis());
    response.writeHead(status, headers);
    response.end(JSON.stringify(body));
  });
}
