/**
 * `POST /v1/cluster/nodes`: adds, removes or replaces a node of the running cluster. While the cluster
 * is open it answers the node's own machine only, and there neither a browser nor a proxy. It parses and formats; group 0 decides.
 */
import type { FastifyInstance } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import {
  NODE_CHANGE_FAILURES,
  NODE_CHANGE_FIELDS,
  type NodeChange,
  type NodeChangeResult,
  validateNodeChange,
} from '../api/node-change.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const FORBIDDEN = forbidden(
  'nodes are added and removed from the machine of the node that is asked, by no browser or proxy',
);

/**
 * `{"add"?: {"id", "http": {"host", "port"}, "peer": {"host", "port"}}, "remove"?: id}`.
 *
 * @throws InvalidBodyError naming the field and its bound
 */
function parseNodesBody(body: unknown): NodeChange {
  const { add, remove } = fieldsOf(body, NODE_CHANGE_FIELDS, 'add, remove or both');
  if (add === undefined && remove === undefined)
    throw new InvalidBodyError('body', NODE_CHANGE_FAILURES.emptyChange.text);
  try {
    return validateNodeChange({ add, remove });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidBodyError(error.field, error.message);
    throw error;
  }
}

function formatNodesAnswer(result: NodeChangeResult): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: { version: result.version } };
  const { status, text: message, ...told } = NODE_CHANGE_FAILURES[result.reason];
  const body = { reason: result.reason, ...told, message };
  if (status === 409) return { status, headers, body };
  return { status, headers: { ...headers, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) }, body };
}

export function addNodesRoute(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  app.post('/v1/cluster/nodes', (request, reply) => {
    if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
    const change = parseNodesBody(request.body);
    node.changeNodes(change, (result) => {
      const answer = formatNodesAnswer(result);
      const { status, body } = answer;
      audited(logger, request, {
        ...(typeof body === 'object' && body),
        action: 'nodes.change',
        change,
        status,
      });
      sendAnswer(reply, answer);
    });
    return reply;
  });
}
