/**
 * `POST /v1/debug/heap-snapshot`, `POST /v1/debug/cpu-profile`: what the process of this node does, for whoever looks for the cause of
 * a defect. Given on the machine of the node only, whatever token is shown, since a heap holds ids of users and secrets. They are no
 * `GET`, which a page in a browser could ask for without a word about where it comes from.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  CPU_PROFILE_SECONDS_DEFAULT,
  CPU_PROFILE_SECONDS_MAX,
  CPU_PROFILE_SECONDS_MIN,
  type WantedDiagnosis,
} from '../api/diagnostics.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpDoorInit } from './door-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { InvalidBodyError } from './json-body.ts';
import { forbidden, isLocal } from './local-callers.ts';
import { queryFieldsOf } from './query-fields.ts';

export const HEAP_SNAPSHOT = '/v1/debug/heap-snapshot';
export const CPU_PROFILE = '/v1/debug/cpu-profile';

const FORBIDDEN = forbidden(
  'heap snapshots and CPU profiles are given on the machine of the node that is asked, to no browser or proxy',
);
const BUSY = failure(
  409,
  'busy',
  'another heap snapshot or CPU profile is being taken; ask again when that is done',
);
const BROKEN_OFF = failure(503, 'brokenOff', 'this node stops; ask again when it runs');

function failure(status: number, reason: string, message: string): HttpAnswer {
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return { status, headers: { 'content-type': JSON_TYPE, ...retry }, body: { reason, message } };
}

/** @throws InvalidBodyError */
function heapSnapshotAsked({ url }: FastifyRequest): WantedDiagnosis {
  queryFieldsOf(url, []);
  return { kind: 'heapSnapshot' };
}

/** `?seconds=N`. @throws InvalidBodyError */
function cpuProfileAsked({ url }: FastifyRequest): WantedDiagnosis {
  const { seconds: text = String(CPU_PROFILE_SECONDS_DEFAULT) } = queryFieldsOf(url, ['seconds']);
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (seconds >= CPU_PROFILE_SECONDS_MIN && seconds <= CPU_PROFILE_SECONDS_MAX)
    return { kind: 'cpuProfile', seconds };
  const bounds = `${CPU_PROFILE_SECONDS_MIN} to ${CPU_PROFILE_SECONDS_MAX}`;
  throw new InvalidBodyError('seconds', `seconds must be an integer from ${bounds}`);
}

/** Before its first byte. Afterwards nothing can be told: the connection breaks. */
function tellBrokenOff(error: Error, { node, logger }: HttpDoorInit, reply: FastifyReply): void {
  if (error instanceof InvalidBodyError) throw error;
  if (node.readiness().status !== 'stopping') logger.error({ err: error }, 'a diagnosis failed');
  reply.removeHeader('content-disposition');
  sendAnswer(reply, BROKEN_OFF);
}

export function addDebugRoutes(app: FastifyInstance, init: HttpDoorInit): void {
  const { node, diagnostics, logger } = init;
  const giving =
    (asked: (request: FastifyRequest) => WantedDiagnosis, suffix: string) =>
    (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
      if (!isLocal(request.socket, request.headers)) {
        sendAnswer(reply, FORBIDDEN);
        return reply;
      }
      if (maybeForbidden(request, reply, { node, forbidding: FORBIDDEN })) return reply;
      const wanted = asked(request);
      const diagnosis = diagnostics.diagnose(wanted);
      const status = diagnosis === undefined ? BUSY.status : 200;
      audited(logger, request, { action: `debug.${wanted.kind}`, status }, 'read by an operator');
      if (diagnosis === undefined) {
        sendAnswer(reply, BUSY);
        return reply;
      }
      const stream = Readable.from(diagnosis.chunks, { objectMode: false, highWaterMark: 1 });
      // A generator that was never begun runs no `finally`.
      stream.once('close', diagnosis.close);
      // The stream waits for what is taken just now, and nobody is there any more to have it.
      reply.raw.once('close', diagnosis.close);
      return reply
        .code(200)
        .header('content-type', 'application/octet-stream')
        .header('cache-control', 'no-store')
        .header('content-disposition', `attachment; filename="quorate-${process.pid}.${suffix}"`)
        .send(stream);
    };
  const options = {
    errorHandler: (error: Error, _request: unknown, reply: FastifyReply) => tellBrokenOff(error, init, reply),
  };
  app.post(HEAP_SNAPSHOT, options, giving(heapSnapshotAsked, 'heapsnapshot'));
  app.post(CPU_PROFILE, options, giving(cpuProfileAsked, 'cpuprofile'));
}
