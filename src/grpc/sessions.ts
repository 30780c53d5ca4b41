/**
 * The HTTP/2 connections of the door: takes their calls from the library's server, and tells a client to go elsewhere. A client that
 * is told goes on until its calls are answered, and nobody else notices.
 */
import {
  constants,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import type { GrpcDoorInit, GrpcLimits } from './door-init.ts';

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** As GOAWAY says that all calls are still taken. */
const ANY_STREAM = 2 ** 31 - 1;
/** Calls that were on their way when a client was told to go are taken for so long. */
const LAST_CALLS_MILLIS = 1_000;
/**
 * Calls of one client in one turn of the event loop, in which few can be asked because of an answer: a socket is read until it is
 * empty, and meanwhile nothing else of the node goes on. Whoever asks for decisions may have many.
 */
const DECISIONS_PER_TURN_MAX = 4_096;
const OTHERS_PER_TURN_MAX = 256;

/**
 * The calls that `mayPass` lets through come to the library, which has one injector.
 *
 * The library shows neither the headers of compression nor the streams, and would answer before anybody could say no.
 */
export function standBefore(
  library: Server,
  mayPass: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean,
): void {
  const { http2Servers } = library as unknown as {
    readonly http2Servers?: ReadonlyMap<Http2Server, unknown>;
  };
  const [server] = http2Servers?.keys() ?? [];
  const [onStream] = (server?.listeners('stream') ?? []) as OnStream[];
  if (server === undefined || onStream === undefined)
    throw new TypeError(
      '@grpc/grpc-js takes its calls from no server of Node: its version is not the one in package.json',
    );
  server.removeAllListeners('stream');
  server.on('stream', (stream, headers) => {
    if (mayPass(stream, headers)) onStream(stream, headers);
  });
}

export class Sessions {
  readonly #monotonicMillis: () => number;
  readonly #leaveMillis: number;
  /** With the time when they were told to go. */
  readonly #leaving = new Map<Http2Session, number>();
  /** Of this turn of the event loop; one that asks for no decision counts for as many as cost the same. */
  readonly #calls = new Map<Http2Session, number>();

  constructor(
    { monotonicMillis }: Pick<GrpcDoorInit, 'monotonicMillis'>,
    { leaveMillis }: Pick<GrpcLimits, 'leaveMillis'>,
  ) {
    this.#monotonicMillis = monotonicMillis;
    this.#leaveMillis = leaveMillis;
  }

  /** Counts a call; false: its client asks without waiting for answers, and is cut off. */
  maybeCall(session: Http2Session, isDecision: boolean): boolean {
    const calls = this.#calls.get(session) ?? 0;
    if (this.#calls.size === 0) setImmediate(() => this.#calls.clear());
    this.#calls.set(session, calls + (isDecision ? 1 : DECISIONS_PER_TURN_MAX / OTHERS_PER_TURN_MAX));
    if (calls >= DECISIONS_PER_TURN_MAX) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    return !session.destroyed;
  }

  /** Tells its client, once. */
  leave(session: Http2Session): void {
    if (this.#leaving.has(session) || session.closed || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, ANY_STREAM);
    this.#leaving.set(session, this.#monotonicMillis());
    session.once('close', () => this.#leaving.delete(session));
  }

  /** To be called every now and then: ends those that were told, once their calls are answered, or take too long. */
  look(): void {
    const now = this.#monotonicMillis();
    for (const [session, toldMillis] of this.#leaving) {
      if (now - toldMillis >= this.#leaveMillis) session.destroy();
      else if (now - toldMillis >= LAST_CALLS_MILLIS && !session.closed) session.close();
    }
  }
}
