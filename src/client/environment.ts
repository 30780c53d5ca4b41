/**
 * All that the client has of its surroundings: time, chance, and the way to a node. Tests play it, so that the rest is deterministic.
 */
import { randomUUID } from 'node:crypto';

/** One HTTP exchange with one node. */
export interface Exchange {
  /** `http://host:port`, without a path. */
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON; absent with GET. */
  readonly body?: string;
  /** From now to the end of the answer. */
  readonly timeoutMillis: number;
}

export type ExchangeResult =
  | { readonly kind: 'response'; readonly status: number; readonly body: string }
  /** No whole answer. `isSent` false: certainly no byte of the request reached the node. */
  | { readonly kind: 'failed'; readonly isSent: boolean; readonly error: Error };

export interface Transport {
  /** `done` is told once, never before this returns. */
  send(exchange: Exchange, done: (result: ExchangeResult) => void): void;
  /** Breaks what is open; each `done` is told still. */
  close(): void;
}

export type Cancel = () => void;

export interface Environment {
  readonly transport: Transport;
  /** Monotonic. */
  readonly nowMillis: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Never the same twice, in any process. */
  readonly drawRequestId: () => string;
  /** Runs `run` when all that was asked in this turn of the event loop is known. */
  readonly soon: (run: () => void) => void;
  readonly after: (millis: number, run: () => void) => Cancel;
}

/** Of this process. */
export function systemEnvironment(transport: Transport): Environment {
  return {
    transport,
    nowMillis: () => performance.now(),
    random: Math.random,
    drawRequestId: randomUUID,
    soon: (run) => void setImmediate(run),
    after: (millis, run) => {
      const timer = setTimeout(run, millis);
      return () => clearTimeout(timer);
    },
  };
}
