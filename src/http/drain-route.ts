/**
 * `PUT` and `DELETE /v1/cluster/nodes/{id}/drain`: drains a node, and ends that; from the same callers as changes of the nodes. It
 * parses and formats; group 0 decides.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DRAIN_FAILURES, type DrainChange, type DrainResult, tooFewUndrainedText } from '../api/drain.ts';
import { NODE_ID_MAX } from '../api/node-address.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

/** As the router of the server has it. */
export const DRAIN = '/v1/cluster/nodes/:nodeId/drain';
const FORBIDDEN = forbidden(
  'nodes are drained from the machine of the node that is asked, by no browser or proxy',
);

export type OfNode = FastifyRequest<{ Params: { nodeId: string } }>;

/** @throws InvalidBodyError if it is no id of a node */
export function parseNode(text: string): number {
  const node = Number(text);
  if (/^\d+$/.test(text) && node >= 1 && node <= NODE_ID_MAX) return node;
  throw new InvalidBodyError('id', `id must be that of a node, an integer from 1 to ${NODE_ID_MAX}`);
}

function formatDrain(
  { node, isDraining }: DrainChange,
  result: DrainResult,
  nodes: Parameters<typeof tooFewUndrainedText>[0],
): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: { node, draining: isDraining } };
  const { reason } = result;
  const { status, text } = DRAIN_FAILURES[reason];
  const message = reason === 'tooFewUndrained' ? tooFewUndrainedText(nodes, node) : text;
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return { status, headers: { ...headers, ...retry }, body: { reason, message } };
}

export function addDrainRoutes(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  const change = (request: OfNode, reply: FastifyReply, isDraining: boolean): FastifyReply => {
    if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
    const asked = { node: parseNode(request.params.nodeId), isDraining };
    node.drain(asked, (result) => {
      const answer = formatDrain(asked, result, node.cluster().nodes);
      const { status } = answer;
      const told = result.ok ? {} : { reason: result.reason };
      audited(logger, request, { action: 'nodes.drain', ...asked, ...told, status });
      sendAnswer(reply, answer);
    });
    return reply;
  };
  app.put(DRAIN, (request: OfNode, reply) => change(request, reply, true));
  app.delete(DRAIN, (request: OfNode, reply) => change(request, reply, false));
}
