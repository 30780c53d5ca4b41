/**
 * Stands before every call: refuses who may not call and what the node cannot take, before the library sees any of it, and bounds
 * how many requests are not there whole, of whom, and how long they may take. It reads no request.
 */
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { type Metadata, status } from '@grpc/grpc-js';
import { UNAVAILABLE } from '../api/refusals.ts';
import { AddressCounts } from '../shedding/address-counts.ts';
import { callerOf, type Refusal } from './callers.ts';
import type { Connections } from './connections.ts';
import type { GrpcAnswers, GrpcDoorInit, GrpcLimits } from './door-init.ts';
import type { Sessions } from './sessions.ts';
import { SHOULD_RATE_LIMIT } from './should-rate-limit.ts';

/** Made once: refusing must cost far less than deciding. */
const OVERLOADED = answerOf({
  code: status.UNAVAILABLE,
  details: `overloaded: ${UNAVAILABLE.overloaded.text}`,
});
/** What inflates to much is made of little. */
const COMPRESSED = answerOf({
  code: status.UNIMPLEMENTED,
  details: 'a request must be sent as it is, without grpc-encoding',
});

/** A client that was refused may go on sending for so long. */
const REFUSED_MILLIS = 1_000;

/** A call whose request is not there whole. */
interface Unfinished {
  readonly startedMillis: number;
  readonly stream: ServerHttp2Stream;
}

/** Whose requests are counted together: those of a token, or of where they come from. The guard puts it where the token was. */
export function clientOf({ metadata }: { readonly metadata: Metadata }): string {
  return String(metadata.get('authorization')[0] ?? '?');
}

export interface CallGuardInit extends Pick<GrpcDoorInit, 'node' | 'monotonicMillis'> {
  readonly limits: GrpcLimits;
  readonly connections: Connections;
  readonly sessions: Sessions;
  readonly answers: GrpcAnswers;
}

export class CallGuard {
  readonly #init: CallGuardInit;
  /** The oldest first. */
  readonly #unfinished = new Set<Unfinished>();
  readonly #unfinishedOf: AddressCounts;
  /** Those that were refused, and whose clients may still send, with the time of that; the oldest first. */
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

  /** False: it is refused, and nothing more may be done with it. */
  maybePass(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean {
    const { node, sessions } = this.#init;
    const { session } = stream;
    if (session === undefined) return false;
    // Clients keep their connections for days.
    if (node.wantsNoClients()) sessions.leave(session);
    const refused = this.#refusedWith(stream, headers);
    const isForService = headers[':path'] === SHOULD_RATE_LIMIT && (refused ?? OVERLOADED) === OVERLOADED;
    if (!sessions.maybeCall(session, isForService)) return false;
    if (refused === undefined) return true;
    this.#refuse(stream, refused);
    return false;
  }

  /** To be called every now and then: ends the calls whose requests take too long, and resets those that were refused and go on. */
  look(): void {
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
   * Whatever its client still sends is read by nobody. A reset that comes with the answer may be seen first, so the client is left some
   * time to end its request by itself.
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

  /** Counts it until its request is there, or it is over; false: it would be one too many. */
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

/** An answer that is nothing but a status. */
function answerOf({ code, details }: Refusal): OutgoingHttpHeaders {
  return {
    ':status': 200,
    'content-type': 'application/grpc+proto',
    'grpc-status': code,
    'grpc-message': encodeURI(details),
    'grpc-accept-encoding': 'identity',
  };
}

/** The library has it: nothing that still comes may be asked. Who has an answer already, or the beginning of one, gets no other. */
function end(stream: ServerHttp2Stream, answer: OutgoingHttpHeaders): void {
  if (!stream.headersSent) stream.respond(answer, { endStream: true });
  else if (!stream.writableFinished) return stream.close(constants.NGHTTP2_CANCEL);
  stream.close(constants.NGHTTP2_NO_ERROR);
}
