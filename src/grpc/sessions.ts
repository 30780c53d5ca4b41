/**
 * The HTTP/2 sessions of the gRPC listener. It intercepts their calls before the library, limits the rate of calls,
 * and sends GOAWAY to clients that should leave. They finish their open calls first, so their users notice nothing.
 */
import {
  constants,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Server } from '@grpc/grpc-js';
import type { GrpcListenerInit, GrpcLimits } from './grpc-listener-init.ts';

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** The highest stream id: GOAWAY with it means that all calls so far, and those on their way, are still accepted. */
const ANY_STREAM = 2 ** 31 - 1;
/** After a client got a GOAWAY, calls that are already on their way are accepted for this many milliseconds. */
const LAST_CALLS_MILLIS = 1_000;
/**
 * The most calls of one client in one turn (one pass of the event loop). Such calls can hardly be reactions to
 * answers: a socket is read until it is empty, and nothing else in the node runs meanwhile. Clients that ask for
 * decisions may have many calls.
 */
const DECISIONS_PER_TURN_MAX = 4_096;
const OTHERS_PER_TURN_MAX = 256;

/**
 * Puts a check before the library: only calls for which `mayPass` returns true reach it. The library must have
 * exactly one injector.
 *
 * This replaces the listener on a private field of the library, because the library gives no access to the
 * compression headers and to the streams, and answers before a check could refuse.
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

/** The sessions of a gRPC listener. */
export class Sessions {
  readonly #monotonicMillis: () => number;
  readonly #leaveMillis: number;
  /** The sessions that got a GOAWAY, with the time. */
  readonly #leaving = new Map<Http2Session, number>();
  /** The calls of each session in this turn. A call that is not for a decision counts as several. */
  readonly #calls = new Map<Http2Session, number>();

  constructor(
    { monotonicMillis }: Pick<GrpcListenerInit, 'monotonicMillis'>,
    { leaveMillis }: Pick<GrpcLimits, 'leaveMillis'>,
  ) {
    this.#monotonicMillis = monotonicMillis;
    this.#leaveMillis = leaveMillis;
  }

  /** Counts a call. False: the client sends calls without waiting for answers, and its session was destroyed. */
  maybeCall(session: Http2Session, isDecision: boolean): boolean {
    const calls = this.#calls.get(session) ?? 0;
    if (this.#calls.size === 0) setImmediate(() => this.#calls.clear());
    this.#calls.set(session, calls + (isDecision ? 1 : DECISIONS_PER_TURN_MAX / OTHERS_PER_TURN_MAX));
    if (calls >= DECISIONS_PER_TURN_MAX) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    return !session.destroyed;
  }

  /** Sends GOAWAY to the client of a session, once. */
  leave(session: Http2Session): void {
    if (this.#leaving.has(session) || session.closed || session.destroyed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, ANY_STREAM);
    this.#leaving.set(session, this.#monotonicMillis());
    session.once('close', () => this.#leaving.delete(session));
  }

  /** Called regularly: closes leaving sessions when their calls are answered, or after the time limit. */
  check(): void {
    const now = this.#monotonicMillis();
    for (const [session, reportedMillis] of this.#leaving) {
      if (now - reportedMillis >= this.#leaveMillis) session.destroy();
      else if (now - reportedMillis >= LAST_CALLS_MILLIS && !session.closed) session.close();
    }
  }
}
