/** How every route that changes the cluster asks for that, writes it down in the log, and answers what became of it. */
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
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';

export interface AskedChange {
  readonly change: ClusterChange;
  /** What the audit log calls it, such as `nodes.drain`. */
  readonly action: string;
  /** What the audit log says of it: no secret, and nothing that identifies a user. */
  readonly details: Readonly<Record<string, unknown>>;
  readonly made: (result: ChangeMade) => Partial<HttpAnswer>;
}

/** @throws what `asked` throws, if the caller may change something */
export function changeCluster(
  { node, logger }: HttpDoorInit,
  { request, reply, forbidding }: { request: FastifyRequest; reply: FastifyReply; forbidding: HttpAnswer },
  asked: () => AskedChange,
): FastifyReply {
  if (maybeForbidden(request, reply, { node, forbidding })) return reply;
  const { change, action, details, made } = asked();
  node.change(change, (result) => {
    const answer = result.ok ? { ...formatMade(result), ...made(result) } : formatRefused(result);
    audited(logger, request, { action, ...details, ...toldOf(result), status: answer.status });
    sendAnswer(reply, answer);
  });
  return reply;
}

/** For the log: what became of it, without the secret of a token. */
function toldOf(result: ChangeResult): Readonly<Record<string, unknown>> {
  if (!result.ok) return { reason: result.reason };
  const { version, pending, made } = result;
  return { version, pending, ...(made !== undefined && { token: made.info.id }) };
}

/** 202: it is made, and those in `pending` do not know yet. */
function formatMade({ version, pending = [] }: ChangeMade): HttpAnswer {
  const status = pending.length === 0 ? 200 : 202;
  return { status, headers: { 'content-type': JSON_TYPE }, body: { version } };
}

export function formatRefused({ reason, message, field, behind }: ChangeRefused): HttpAnswer {
  const { status, text } = CHANGE_FAILURES[reason];
  const said = message ?? text;
  if (field !== undefined) return formatInvalid(field, said, status);
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return {
    status,
    headers: { 'content-type': JSON_TYPE, ...retry },
    body: { reason, message: said, ...(behind !== undefined && { behind }) },
  };
}
