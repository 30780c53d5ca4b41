/**
 * `POST /v1/debug/heap-snapshot` and `POST /v1/debug/cpu-profile`: diagnostics of the node's process. Only programs on
 * the node's own machine get them, even with a valid token, because a heap contains user ids and secrets. They are not
 * `GET`, because a browser page could request a `GET` without an `Origin` header.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  CPU_PROFILE_SECONDS_DEFAULT,
  CPU_PROFILE_SECONDS_MAX,
  CPU_PROFILE_SECONDS_MIN,
  type WantedDiagnosis,
} from '../api/api-listener.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { InvalidBodyError } from './json-body.ts';
import { forbidden, isLocal } from './local-callers.ts';
import { queryFieldsOf } from './query-fields.ts';

/** The path of the heap snapshot. */
export const HEAP_SNAPSHOT = '/v1/debug/heap-snapshot';
/** The path of the CPU profile. */
export const CPU_PROFILE = '/v1/debug/cpu-profile';

const FORBIDDEN = forbidden(
  'heap snapshots and CPU profiles are only sent to programs on the machine of this node, not to a browser or proxy',
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

/** Parses the query of a heap snapshot, which must be empty. @throws InvalidBodyError */
function heapSnapshotAsked({ url }: FastifyRequest): WantedDiagnosis {
  queryFieldsOf(url, []);
  return { kind: 'heapSnapshot' };
}

/** Parses `?seconds=N`. @throws InvalidBodyError */
function cpuProfileAsked({ url }: FastifyRequest): WantedDiagnosis {
  const { seconds: text = String(CPU_PROFILE_SECONDS_DEFAULT) } = queryFieldsOf(url, ['seconds']);
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (seconds >= CPU_PROFILE_SECONDS_MIN && seconds <= CPU_PROFILE_SECONDS_MAX)
    return { kind: 'cpuProfile', seconds };
  const bounds = `${CPU_PROFILE_SECONDS_MIN} to ${CPU_PROFILE_SECONDS_MAX}`;
  throw new InvalidBodyError('seconds', `seconds must be an integer from ${bounds}`);
}

/** Reports an error that occurred before the first byte was sent. After the first byte the connection just breaks. */
function sendBrokenOff(error: Error, { node, logger }: HttpListenerInit, reply: FastifyReply): void {
  if (error instanceof InvalidBodyError) throw error;
  if (node.readiness().status !== 'stopping') logger.error({ err: error }, 'a diagnosis failed');
  reply.removeHeader('content-disposition');
  sendAnswer(reply, BROKEN_OFF);
}

/** Adds the routes. */
export function addDebugRoutes(app: FastifyInstance, init: HttpListenerInit): void {
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
      audited(logger, request, { action: `debug.${wanted.kind}`, status }, 'read');
      if (diagnosis === undefined) {
        sendAnswer(reply, BUSY);
        return reply;
      }
      const stream = Readable.from(diagnosis.chunks, { objectMode: false, highWaterMark: 1 });
      // A generator that was never started does not run its `finally`.
      stream.once('close', diagnosis.close);
      // The client may leave while the stream still waits for its first chunk.
      reply.raw.once('close', diagnosis.close);
      return reply
        .code(200)
        .header('content-type', 'application/octet-stream')
        .header('cache-control', 'no-store')
        .header('content-disposition', `attachment; filename="quorate-${process.pid}.${suffix}"`)
        .send(stream);
    };
  const options = {
    errorHandler: (error: Error, _request: unknown, reply: FastifyReply) => sendBrokenOff(error, init, reply),
  };
  app.post(HEAP_SNAPSHOT, options, giving(heapSnapshotAsked, 'heapsnapshot'));
  app.post(CPU_PROFILE, options, giving(cpuProfileAsked, 'cpuprofile'));
}
