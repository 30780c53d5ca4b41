/**
 * `PUT /v1/cluster/version`: raises the version of the cluster; from the same callers as changes of the nodes. It parses and
 * formats; group 0 decides.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { InvalidFieldError } from '../api/fields.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import {
  nodesBehindText,
  UPGRADE_FAILURES,
  type UpgradeChange,
  type UpgradeResult,
  validateUpgrade,
} from '../api/upgrade.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { fieldsOf, InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

const FORBIDDEN = forbidden(
  'a cluster is upgraded from the machine of the node that is asked, by no browser or proxy',
);

/** `{"version": n}`. @throws InvalidBodyError naming the field and its bound */
function parseUpgrade(body: unknown): UpgradeChange {
  try {
    return validateUpgrade(fieldsOf(body, ['version'], 'version'));
  } catch (error) {
    if (error instanceof InvalidFieldError)
      throw new InvalidBodyError(error.field, `${error.field} ${error.message}`);
    throw error;
  }
}

function formatUpgrade({ version }: UpgradeChange, result: UpgradeResult): HttpAnswer {
  const headers = { 'content-type': JSON_TYPE };
  if (result.ok) return { status: 200, headers, body: { version: result.version } };
  const { reason, behind } = result;
  const { status, text } = UPGRADE_FAILURES[reason];
  const message = behind === undefined ? text : nodesBehindText(behind, version);
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  const told = behind === undefined ? {} : { behind };
  return { status, headers: { ...headers, ...retry }, body: { reason, message, ...told } };
}

export function addUpgradeRoute(app: FastifyInstance, { node, logger }: HttpDoorInit): void {
  app.put('/v1/cluster/version', (request: FastifyRequest, reply: FastifyReply) => {
    if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
    const asked = parseUpgrade(request.body);
    node.upgrade(asked, (result) => {
      const answer = formatUpgrade(asked, result);
      const { status } = answer;
      const told = result.ok ? {} : { reason: result.reason };
      audited(logger, request, { action: 'cluster.upgrade', ...asked, ...told, status });
      sendAnswer(reply, answer);
    });
    return reply;
  });
}
