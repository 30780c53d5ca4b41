/**
 * `GET /v1/backup/{group}`: the state of one group as a stream of chunks. The stream reads from the node only as fast
 * as the client takes it, and at most at the requested rate. No more than one chunk is in memory.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  BACKUP_BYTES_PER_SECOND_MAX,
  type NoBackup,
  type OpenBackup,
  SNAPSHOT_HEADER,
} from '../api/backup.ts';
import { UNAVAILABLE_RETRY_SECONDS } from '../api/refusals.ts';
import { audited } from './audit.ts';
import { maybeForbidden } from './callers.ts';
import type { HttpListenerInit } from './http-listener-init.ts';
import { type HttpAnswer, JSON_TYPE, sendAnswer } from './http-answer.ts';
import { InvalidBodyError } from './json-body.ts';
import { forbidden } from './local-callers.ts';

/** The path of the route, in Fastify's notation. */
export const ONE_BACKUP = '/v1/backup/:group';
const FORBIDDEN = forbidden(
  'while the cluster is open, backups are only sent to programs on the machine of this node, not to a browser or through a proxy, because they contain user ids',
);
/** A group is a decimal number without leading zeros. */
const GROUP = /^(0|[1-9]\d{0,8})$/;
/** The stream cannot go on. The client has to ask again. */
class BrokenOff extends Error {
  readonly code = 'BROKEN_OFF';
}
const BROKEN_OFF = 'brokenOff';
const FAILURES: Readonly<Record<NoBackup | typeof BROKEN_OFF, readonly [status: number, message: string]>> = {
  starting: [503, 'this node is starting; try again'],
  noSuchGroup: [404, 'there is no such group; 0 is the group of the cluster, p + 1 the group of partition p'],
  notLeader: [409, 'this node does not lead the group; ask the node that does'],
  busy: [503, 'this node is sending another backup; try again when that is done'],
  brokenOff: [503, 'this node stops, or its snapshot was replaced; ask again'],
};

/** The rate in bytes per second from `?maxBytesPerSecond=N`. @throws InvalidBodyError */
function rateOf(url: string): number {
  const query = new URLSearchParams(url.includes('?') ? url.slice(url.indexOf('?') + 1) : '');
  const text = query.get('maxBytesPerSecond');
  if (text === null && query.size === 0) return BACKUP_BYTES_PER_SECOND_MAX;
  const rate = text !== null && /^\d{1,15}$/.test(text) && query.size === 1 ? Number(text) : 0;
  if (rate >= 1) return Math.min(rate, BACKUP_BYTES_PER_SECOND_MAX);
  throw new InvalidBodyError('query', 'query must be maxBytesPerSecond with an integer >= 1, or absent');
}

function failure(reason: keyof typeof FAILURES): HttpAnswer {
  const [status, message] = FAILURES[reason];
  const retry = status === 503 ? { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) } : {};
  return { status, headers: { 'content-type': JSON_TYPE, ...retry }, body: { reason, message } };
}

interface Pace extends MonotonicClock {
  readonly bytesPerSecond: number;
  /** True once the node stops: the stream then breaks. */
  readonly isStopping: () => boolean;
}

/** The chunks, each behind its length. Fails early if the snapshot is replaced; the client then asks again. */
async function* framed({ snapshot, read, close }: OpenBackup, pace: Pace): AsyncGenerator<Uint8Array> {
  const startedMillis = pace.monotonicMillis();
  try {
    let sentBytes = 0;
    for (let chunk = 0; chunk < snapshot.chunkCount; chunk += 1) {
      if (pace.isStopping()) throw new BrokenOff('the node stops');
      const data = await read(chunk);
      if (data === undefined) throw new BrokenOff('the snapshot was replaced');
      const length = Buffer.alloc(4);
      length.writeUInt32LE(data.byteLength);
      yield Buffer.concat([length, data]);
      sentBytes += 4 + data.byteLength;
      await paced(startedMillis + (1_000 * sentBytes) / pace.bytesPerSecond, pace);
    }
  } finally {
    close();
  }
}

/** How often a waiting stream checks whether the node stops, so that a slow rate does not delay the stop. */
const CHECK_MILLIS = 250;

async function paced(dueMillis: number, { monotonicMillis, isStopping }: Pace): Promise<void> {
  for (
    let left = dueMillis - monotonicMillis();
    left >= 1 && !isStopping();
    left = dueMillis - monotonicMillis()
  )
    await delay(Math.min(left, CHECK_MILLIS));
}

type OfGroup = FastifyRequest<{ Params: { group: string } }>;

/** Reports an error that occurred before the first byte was sent. After the first byte the connection just breaks. */
function sendBrokenOff(error: Error, _request: unknown, reply: FastifyReply): void {
  if (!(error instanceof BrokenOff)) throw error;
  reply.removeHeader('content-length').removeHeader(SNAPSHOT_HEADER);
  sendAnswer(reply, failure(BROKEN_OFF));
}

/** Adds the route. */
export function addBackupRoute(
  app: FastifyInstance,
  { node, logger, monotonicMillis }: HttpListenerInit,
): void {
  const gate = { node, forbidding: FORBIDDEN };
  app.get(ONE_BACKUP, { exposeHeadRoute: false, errorHandler: sendBrokenOff }, (request: OfGroup, reply) => {
    if (maybeForbidden(request, reply, gate)) return reply;
    const bytesPerSecond = rateOf(request.url);
    const { group } = request.params;
    if (!GROUP.test(group)) {
      sendAnswer(reply, failure('noSuchGroup'));
      return reply;
    }
    node.backup(Number(group), (started) => {
      if (!started.ok) return sendAnswer(reply, failure(started.reason));
      const { backup } = started;
      const { snapshot } = backup;
      const line = { action: 'backup', group: snapshot.group, index: snapshot.index, status: 200 };
      audited(logger, request, line, 'read');
      if (request.raw.socket.destroyed) return backup.close();
      const pace = { bytesPerSecond, monotonicMillis, isStopping: () => node.wantsNoClients() };
      const stream = Readable.from(framed(backup, pace), { objectMode: false, highWaterMark: 1 });
      // A generator that was never started does not run its `finally`.
      stream.once('close', () => backup.close());
      void reply
        .code(200)
        .header('content-type', 'application/octet-stream')
        .header('cache-control', 'no-store')
        .header(SNAPSHOT_HEADER, JSON.stringify(snapshot))
        .header('content-length', snapshot.byteLength + 4 * snapshot.chunkCount)
        .send(stream);
    });
    return reply;
  });
}
