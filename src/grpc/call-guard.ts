/**
 * The check before every call: it authenticates the caller, and refuses callers that may not call the method and calls
 * the node cannot take, before the gRPC library sees them. It also bounds the number of incomplete requests, per
 * client and in total, and their time. It does not read requests.
 */
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { status, type StatusObject, type Metadata } from '@grpc/grpc-js';
import { type AccessApi, type Role, ROLES } from '../api/token.ts';
import { HEALTH_CHECK, HEALTH_WATCH } from './health.ts';
import { REFLECTION_VERSIONS, reflectionPath } from './reflection.ts';
import { SHOULD_RATE_LIMIT } from './should-rate-limit.ts';
import { UNAVAILABLE } from '../api/refusals.ts';
import { AddressCounts } from '../shedding/address-counts.ts';
import type { Connections } from './connections.ts';
import type { GrpcAnswers, GrpcListenerInit, GrpcLimits } from './grpc-listener-init.ts';
import type { Sessions } from './sessions.ts';

/** Built only once, because refusing must cost far less than deciding. */
const OVERLOADED = answerOf({
  code: status.UNAVAILABLE,
  details: `overloaded: ${UNAVAILABLE.overloaded.text}`,
});
/** Compressed requests are refused, because a few bytes can inflate to many. */
const COMPRESSED = answerOf({
  code: status.UNIMPLEMENTED,
  details: 'a request must be sent as it is, without grpc-encoding',
});

/** After a refusal, a client may continue sending for this many milliseconds. */
const REFUSED_MILLIS = 1_000;

/** A call whose request has not arrived completely. */
interface Unfinished {
  readonly startedMillis: number;
  readonly stream: ServerHttp2Stream;
}

/**
 * The client that a call is counted under: the id of its token, or its address. The guard puts it into the
 * `authorization` header, in place of the token.
 */
export function clientOf({ metadata }: { readonly metadata: Metadata }): string {
  return String(metadata.get('authorization')[0] ?? '?');
}

/** The parts of the guard. */
export interface CallGuardInit extends Pick<GrpcListenerInit, 'node' | 'monotonicMillis'> {
  readonly limits: GrpcLimits;
  readonly connections: Connections;
  readonly sessions: Sessions;
  readonly answers: GrpcAnswers;
}

/** The check before every call. */
export class CallGuard {
  readonly #init: CallGuardInit;
  /** The oldest first. */
  readonly #unfinished = new Set<Unfinished>();
  readonly #unfinishedOf: AddressCounts;
  /** The refused calls whose clients may still be sending, with the time of the refusal; the oldest first. */
  readonly #refused = new Map<ServerHttp2Stream, number>();
  readonly #late: OutgoingHttpHeaders;

  constructor(init: CallGuardInit) {
    this.#init = init;
    this.#unfinishedOf = new AddressCounts(init.limits.unfinishedPerClientMax);
    this.#late = answerOf({
      code: status.DEADLINE_EXCEEDED,
      details: `the request must arrive within ${init.limits.requestMillis} ms`,
    });
  }

  /** Checks a call. False: it was refused, and the caller must not touch it any more. */
  maybePass(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const { node, sessions } = this.#init;
    const { session } = stream;
    if (session === undefined) return false;
    // Clients keep their connections for days, so this client gets a GOAWAY if it should leave.
    if (node.wantsNoClients()) sessions.leave(session);
    const refused = this.#refusedWith(stream, headers);
    const isForService = headers[':path'] === SHOULD_RATE_LIMIT && (refused ?? OVERLOADED) === OVERLOADED;
    if (!sessions.maybeCall(session, isForService)) return false;
    if (refused === undefined) return true;
    this.#refuse(stream, refused);
    return false;
  }

  /** Called regularly: ends calls whose requests take too long, and resets refused calls that continue. */
  check(): void {
    const { monotonicMillis, limits } = this.#init;
    const now = monotonicMillis();
    for (const { startedMillis, stream } of this.#unfinished) {
      if (now - startedMillis < limits.requestMillis) break;
      end(stream, this.#late);
    }
    for (const [stream, refusedMillis] of this.#refused) {
      if (now - refusedMillis < REFUSED_MILLIS) break;
      stream.close(constants.NGHTTP2_NO_ERROR);
    }
  }

  /**
   * Answers a call with an error. Bytes that its client still sends are dropped. A reset right after the answer could
   * reach the client before the answer, so the client first gets some time to end its request.
   */
  #refuse(stream: ServerHttp2Stream, answer: OutgoingHttpHeaders): void {
    stream.on('error', () => {});
    stream.respond(answer, { endStream: true });
    this.#refused.set(stream, this.#init.monotonicMillis());
    stream.once('close', () => this.#refused.delete(stream));
    stream.resume();
  }

  #refusedWith(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): OutgoingHttpHeaders | undefined {
    const { node, connections } = this.#init;
    const path = String(headers[':path']);
    const { remoteAddress, remotePort } = stream.session?.socket ?? {};
    const caller = callerOf(node.access, path, headers.authorization);
    if (caller.refusal !== undefined) {
      if (caller.isWrongToken) {
        node.access.failed('grpc');
        connections.failedOnce({ remoteAddress, remotePort });
      }
      return answerOf(caller.refusal);
    }
    if ((headers['grpc-encoding'] ?? 'identity') !== 'identity') return COMPRESSED;
    const client = caller.tokenId ?? remoteAddress ?? '?';
    headers.authorization = client;
    const isDecision = path === SHOULD_RATE_LIMIT;
    if (!(isDecision && node.shedding.refuses(client)) && this.#maybeEnter(stream, client)) return undefined;
    if (isDecision) {
      this.#init.answers.unavailable += 1;
      node.refusedUnread(1);
    }
    return OVERLOADED;
  }

  /** Counts the call until its request is complete or the call is over. False: there would be too many. */
  #maybeEnter(stream: ServerHttp2Stream, client: string): boolean {
    if (stream.endAfterHeaders) return true;
    const { limits, monotonicMillis } = this.#init;
    if (this.#unfinished.size >= limits.unfinishedMax || !this.#unfinishedOf.maybeEnter(client)) return false;
    const unfinished: Unfinished = { startedMillis: monotonicMillis(), stream };
    const left = (): void => {
      if (this.#unfinished.delete(unfinished)) this.#unfinishedOf.left(client);
    };
    this.#unfinished.add(unfinished);
    stream.once('end', left);
    stream.once('close', left);
    return true;
  }
}

/** A response that consists only of a status. */
function answerOf({ code, details }: Refusal): OutgoingHttpHeaders {
  return {
    ':status': 200,
    'content-type': 'application/grpc+proto',
    'grpc-status': code,
    'grpc-message': encodeURI(details),
    'grpc-accept-encoding': 'identity',
  };
}

/**
 * Ends a call that the library already handles, so that the rest of its request is never processed. If the answer has
 * begun, no other one is sent.
 */
function end(stream: ServerHttp2Stream, answer: OutgoingHttpHeaders): void {
  if (!stream.headersSent) stream.respond(answer, { endStream: true });
  else if (!stream.writableFinished) return stream.close(constants.NGHTTP2_CANCEL);
  stream.close(constants.NGHTTP2_NO_ERROR);
}

const BEARER = /^Bearer +(\S+) *$/i;

/** The status of a refused call. */
type Refusal = Pick<StatusObject, 'code' | 'details'>;

type Roles = 'anybody' | readonly Role[];

const METHOD_ROLES: ReadonlyMap<string, Roles> = new Map<string, Roles>([
  [SHOULD_RATE_LIMIT, ['decide', 'admin']],
  [HEALTH_CHECK, 'anybody'],
  [HEALTH_WATCH, 'anybody'],
  // Every valid token may list the services.
  ...REFLECTION_VERSIONS.map((version) => [reflectionPath(version), ROLES] as const),
]);

/** The caller of a method, or the reason of a refusal. `isWrongToken`: a token was sent, and it is not valid. */
type Caller =
  | { readonly tokenId: string | undefined; readonly refusal?: undefined }
  | { readonly refusal: Refusal; readonly isWrongToken: boolean };

/** Checks the caller of a method. @param authorization the header of the call */
function callerOf(access: AccessApi, path: string, authorization: string | undefined): Caller {
  const roles = METHOD_ROLES.get(path);
  if (roles === undefined) return refused(status.UNIMPLEMENTED, 'no such method is served here');
  const mode = access.mode();
  if (mode === 'open' || roles === 'anybody') return { tokenId: undefined };
  if (mode === 'unknown')
    return refused(status.UNAVAILABLE, 'this node does not know yet which tokens are valid; ask again');
  const [, token] = BEARER.exec(authorization ?? '') ?? [];
  const caller = token === undefined ? undefined : access.callerOf(token);
  if (caller === undefined)
    return refused(
      status.UNAUTHENTICATED,
      'send a valid token: authorization: Bearer qt_...',
      // A call without a token is not counted as a failure: its client may not know that one is needed.
      token !== undefined,
    );
  if (roles.includes(caller.role)) return { tokenId: caller.id };
  const needed = roles.join(' or ');
  return refused(
    status.PERMISSION_DENIED,
    `this needs a token of role ${needed}, and this one has ${caller.role}`,
  );
}

function refused(code: status, details: string, isWrongToken = false): Caller {
  return { refusal: { code, details }, isWrongToken };
}
