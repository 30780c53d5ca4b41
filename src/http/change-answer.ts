/**
 * The common part of all routes that change the cluster: ask the node, write the audit log, and format the answer.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  CHANGE_FAILURES,
  type ChangeMade,
  type ChangeRefused,
  type ChangeResult,
  type ClusterChange,
} from '../api/cluster-change.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { formatInvalid } from './answer-format.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';

/** A change, and how it is logged and answered. */
export interface AskedChange {
  readonly change: ClusterChange;
  /** The action in the audit log, such as `nodes.drain`. */
  readonly action: string;
  /** The details in the audit log: no secrets, and nothing that identifies a user. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly made: (result: ChangeMade) => Partial<HttpAnswer>;
}

/**
 * Makes a change if the caller may, and answers the request. @throws what `asked` throws, but only if the caller may
 * change something
 */
export function changeCluster(
  { node, logger }: HttpListenerInit,
  { request, reply, forbidding }: { request: FastifyRequest; reply: FastifyReply; forbidding: HttpAnswer },
  asked: () => AskedChange,
): FastifyReply {
  if (maybeForbidden(request, reply, { node, forbidding })) return reply;
  const { change, action, details, made } = asked();
  node.change(change, (result) => {
    const answer = result.ok ? { ...formatMade(result), ...made(result) } : formatRefused(result);
    audited(logger, request, { action, ...details, ...resultOf(result), status: answer.status });
    sendAnswer(reply, answer);
  });
  return reply;
}

/** The result as the audit log has it, without the secret of a token. */
function resultOf(result: ChangeResult): Readonly<Record<string, unknown>> {
  if (!result.ok) return { reason: result.reason };
  const { version, pending, made } = result;
  return { version, pending, ...(made !== undefined && { token: made.info.id }) };
}

/** The answer to a change that was made. 202: it is made, and those in `pending` do not know it yet. */
function formatMade({ version, pending = [] }: ChangeMade): HttpAnswer {
  const status = pending.length === 0 ? 200 : 202;
  return { status, headers: { 'content-type': JSON_TYPE }, body: { version } };
}

/** The answer to a change that was refused. */
export function formatRefused({ reason, message, field, behind }: ChangeRefused): HttpAnswer {
  const { status, text } = CHANGE_FAILURES[reason];
  const shown = message ?? text;
  if (field !== undefined) return formatInvalid(field, shown, status);
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return {
    status,
    headers: { 'content-type': JSON_TYPE, ...retry },
    body: { reason, message: shown, ...(behind !== undefined && { behind }) },
  };
}
