/**
 * The routes that report on a node and its cluster: for probes, Prometheus, clients and people. While the cluster is
 * open, `GET /v1/usage` shows keys of users only to programs on the node's own machine.
 */
import type { FastifyInstance } from 'fastify';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { USAGE_FAILURES, type UsageQuery, type UsageResult, validateUsageQuery } from '../api/usage.ts';
import { mayChange } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { forbidden } from './local-callers.ts';
import { queryFieldsOf } from './query-fields.ts';
import { leadersOf } from '../api/leaders.ts';

/** Adds `GET /v1/cluster`, `GET /v1/leaders`, `GET /healthz`, `GET /readyz`, `GET /metrics`. */
export function addStatusRoutes(app: FastifyInstance, { node, metrics }: HttpListenerInit): void {
  app.get('/v1/cluster', (_request, reply) => {
    const readiness = node.readiness();
    if (readiness.status !== 'starting') return node.cluster();
    void reply.code(503);
    return readiness;
  });
  app.get('/v1/leaders', (_request, reply) => {
    const readiness = node.readiness();
    if (readiness.status !== 'starting') return leadersOf(node.cluster());
    void reply.code(503);
    return readiness;
  });
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const readiness = node.readiness();
    void reply.code(readiness.status === 'ready' ? 200 : 503);
    return readiness;
  });
  app.get('/metrics', async (_request, reply) => {
    const { contentType, text } = await metrics();
    void reply.type(contentType);
    return text;
  });
}

const NAMES = ['minutes', 'rule', 'top'] as const;
const NUMBER = /^\d{1,15}$/;
const FORBIDDEN = forbidden(
  'while the cluster is open, top is only answered to programs on the machine of this node, not to a browser or proxy, because it names users',
);

/**
 * Parses `?minutes=N&rule=R&top=N`, each at most once. @throws InvalidFieldError naming the parameter and its bound
 */
function parseUsageQuery(url: string): UsageQuery {
  // A value that is no number stays text here, and the check of bounds refuses it.
  const found = Object.fromEntries(
    Object.entries(queryFieldsOf(url, NAMES)).map(([name, value]) => [
      name,
      name !== 'rule' && NUMBER.test(value) ? Number(value) : value,
    ]),
  );
  return validateUsageQuery(found);
}

function formatUsage(result: UsageResult): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: result.report };
  const { reason } = result;
  const retry = { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
  return {
    status: 503,
    headers: { ...headers, ...retry },
    body: { reason, message: USAGE_FAILURES[reason] },
  };
}

/** Adds `GET /v1/usage`: the counted answers of all nodes. */
export function addUsageRoute(app: FastifyInstance, { node }: HttpListenerInit): void {
  app.get('/v1/usage', (request, reply) => {
    const query = parseUsageQuery(request.url);
    if (query.top > 0 && !mayChange(request, node)) sendAnswer(reply, FORBIDDEN);
    else node.usage(query, (result) => sendAnswer(reply, formatUsage(result)));
    return reply;
  });
}
