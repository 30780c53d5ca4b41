/** The status routes of a node: for probes, Prometheus, clients and people. */
import type { FastifyInstance } from 'fastify';
import { leadersOf } from '../api/leaders.ts';
import type { HttpListenerInit } from './http-listener-init.ts';

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
