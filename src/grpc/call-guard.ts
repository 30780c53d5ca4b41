/**
 * Stands before every call: refuses who may not call and what the node cannot take, before the request is read, and bounds how
 * many requests are not there whole and how long they may take. It reads no request.
 */
import {
  type Metadata,
  type ServerInterceptor,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  status,
} from '@grpc/grpc-js';
import { UNAVAILABLE } from '../api/refusals.ts';
import { callerOf, type Refusal } from './callers.ts';
import type { Connections } from './connections.ts';
import type { GrpcAnswers, GrpcDoorInit, GrpcLimits } from './door-init.ts';
import { SHOULD_RATE_LIMIT } from './should-rate-limit.ts';

/** Made once: refusing must cost far less than deciding. */
const OVERLOADED: Refusal = {
  code: status.UNAVAILABLE,
  details: `overloaded: ${UNAVAILABLE.overloaded.text}`,
};

/** A call whose request is not there whole. */
interface Unfinished {
  readonly startedMillis: number;
  readonly call: ServerInterceptingCallInterface;
}

/** Whose requests are counted together: those of a token, or of where they come from. By the metadata of their call. */
const clients = new WeakMap<Metadata, string>();

export function clientOf(metadata: Metadata): string {
  return clients.get(metadata) ?? '?';
}

export interface CallGuardInit extends Pick<GrpcDoorInit, 'node' | 'monotonicMillis'> {
  readonly limits: GrpcLimits;
  readonly connections: Connections;
  readonly answers: GrpcAnswers;
}

export class CallGuard {
  readonly #init: CallGuardInit;
  /** The oldest first. */
  readonly #unfinished = new Set<Unfinished>();

  constructor(init: CallGuardInit) {
    this.#init = init;
  }

  readonly interceptor: ServerInterceptor = ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        const unfinished: Unfinished = { startedMillis: this.#init.monotonicMillis(), call };
        const end = (): void => void this.#unfinished.delete(unfinished);
        next({
          onReceiveMetadata: (metadata, goOn) => {
            const refusal = this.#refusalOf(path, metadata, call);
            if (refusal !== undefined) return call.sendStatus(refusal);
            this.#unfinished.add(unfinished);
            goOn(metadata);
          },
          onReceiveHalfClose(goOn) {
            end();
            goOn();
          },
          onCancel: end,
        });
      },
    });

  /** To be called every now and then: ends the calls whose requests take too long. */
  look(): void {
    const { monotonicMillis, limits } = this.#init;
    const sinceMillis = monotonicMillis() - limits.requestMillis;
    for (const unfinished of this.#unfinished) {
      if (unfinished.startedMillis > sinceMillis) return;
      this.#unfinished.delete(unfinished);
      unfinished.call.sendStatus({
        code: status.DEADLINE_EXCEEDED,
        details: `the request must arrive within ${limits.requestMillis} ms`,
      });
    }
  }

  #refusalOf(path: string, metadata: Metadata, call: ServerInterceptingCallInterface): Refusal | undefined {
    const { node, limits, connections, answers } = this.#init;
    const connection = call.getConnectionInfo();
    const caller = callerOf(node.access, path, metadata);
    if (caller.refusal !== undefined) {
      if (caller.isWrongToken) {
        node.access.failed('grpc');
        connections.failedOnce(connection);
      }
      return caller.refusal;
    }
    const client = caller.tokenId ?? connection.remoteAddress ?? '?';
    clients.set(metadata, client);
    const isDecision = path === SHOULD_RATE_LIMIT;
    const isFull = this.#unfinished.size >= limits.unfinishedMax;
    if (!isFull && !(isDecision && node.shedding.refuses(client))) return undefined;
    if (isDecision) {
      answers.unavailable += 1;
      node.refusedUnread(1);
    }
    return OVERLOADED;
  }
}
