/**
 * `PUT /v1/cluster/nodes/{id}/labels`: says otherwise where a node stands; from the same callers as changes of the nodes. It parses and
 * formats; group 0 decides.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import {
  LABEL_FAILURES,
  type LabelChange,
  type LabelResult,
  validateLabelChange,
} from '../api/label-change.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type OfNode, parseNode } from './drain-route.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

/** As the router of the server has it. */
export const LABELS = '/v1/cluster/nodes/:nodeId/labels';
const FORBIDDEN = forbidden(
  'nodes are labelled from the machine of the node that is asked, by no browser or proxy',
);

/** `{"zone"?: text or null, "host"?: text or null}`. @throws InvalidBodyError naming the field and its bound */
function parseLabels(node: number, body: unknown): LabelChange {
  try {
    return validateLabelChange({ ...fieldsOf(body, ['zone', 'host'], 'zone, host or both'), node });
  } catch (error) {
    if (error instanceof InvalidFieldError) throw new InvalidBodyError(error.field, error.message);
    throw error;
  }
}

function formatLabelled(node: number, result: LabelResult): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: { node, version: result.version } };
  const { reason } = result;
  const { status, text: message } = LABEL_FAILURES[reason];
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return { status, headers: { ...headers, ...retry }, body: { reason, message } };
}

export function addLabelsRoute(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  app.put(LABELS, (request: OfNode, reply: FastifyReply) => {
    if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
    const asked = parseLabels(parseNode(request.params.nodeId), request.body);
    node.label(asked, (result) => {
      const answer = formatLabelled(asked.node, result);
      const { status } = answer;
      const told = result.ok ? {} : { reason: result.reason };
      audited(logger, request, { action: 'nodes.label', ...asked, ...told, status });
      sendAnswer(reply, answer);
    });
    return reply;
  });
}
