/**
 * The surroundings of the client: clock, timers, randomness and transport. Tests replace it, so that the rest of
 * the client is deterministic.
 */
import { randomUUID } from 'node:crypto';

/** One HTTP exchange with one node. */
export interface Exchange {
  /** The address of the node as `http://host:port` or `https://host:port`, without a path. */
  readonly origin: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON text. Absent with GET. */
  readonly body?: string;
  /** Longest time until the whole answer is read, in milliseconds. */
  readonly timeoutMillis: number;
}

/** The result of an exchange. */
export type ExchangeResult =
  | { readonly kind: 'response'; readonly status: number; readonly body: string }
  /** There was no complete answer. If `isSent` is false, no byte of the request reached the node. */
  | { readonly kind: 'failed'; readonly isSent: boolean; readonly error: Error };

/** Sends HTTP requests to nodes. */
export interface Transport {
  /** Calls `done` once, never before `send` has returned. */
  send(exchange: Exchange, done: (result: ExchangeResult) => void): void;
  /** Breaks all open exchanges. Their `done` is still called. */
  close(): void;
}

/** Cancels a timer. Calling it twice, or after the timer has fired, does nothing. */
export type Cancel = () => void;

/** Clock, timers, randomness and transport of a client. */
export interface Environment {
  readonly transport: Transport;
  /** A monotonic clock. */
  readonly nowMillis: () => number;
  /** Returns a random number, at least 0 and below 1. */
  readonly random: () => number;
  /** Draws a request id that is unique across all processes. */
  readonly drawRequestId: () => string;
  /** Calls `run` after the current turn of the event loop, when all requests of this turn have been made. */
  readonly soon: (run: () => void) => void;
  readonly after: (millis: number, run: () => void) => Cancel;
}

/** The environment of a real process. */
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
