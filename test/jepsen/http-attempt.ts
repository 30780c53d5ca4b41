/** Sends one HTTP request, without silent retries, and reports how it ended. Judges nothing and keeps nothing. */
import { type Agent, request as httpRequest } from 'node:http';
import type { Outcome } from './history.ts';

/**
 * A client closes a kept connection that was idle for this long, as a pool does. A stopping node waits twice as long
 * before it closes one, so no request is sent on a connection that is being closed.
 */
export const KEPT_MILLIS_MAX = 400;

/** How much longer than a node's deadline a client waits for its answer. */
export const PATIENCE_MILLIS = 1_500;

export interface Attempt {
  readonly agent: Agent;
  readonly port: number;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** JSON. Absent: the request has no body. */
  readonly payload?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client gives up after this long. */
  readonly patienceMillis: number;
}

/** Always resolves: a broken connection is an outcome, too. */
export function attempt({ payload, patienceMillis, headers, ...target }: Attempt): Promise<Outcome> {
  return new Promise((resolve) => {
    const body = payload && { 'content-type': 'application/json', 'content-length': payload.byteLength };
    const request = httpRequest({ ...target, host: '127.0.0.1', headers: { ...body, ...headers } });
    const timer = setTimeout(() => request.destroy(new Error('given up')), patienceMillis);
    const settle = (outcome: Outcome): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', (error) => settle(brokenOutcome(error, 'in an answer')));
      response.on('end', () => {
        const answer = parsed(Buffer.concat(chunks).toString('utf8'));
        settle({ kind: 'answer', status: response.statusCode ?? 0, body: answer });
      });
    });
    request.on('error', (error) =>
      settle(brokenOutcome(error, request.reusedSocket ? 'on a kept connection' : 'on a new connection')),
    );
    request.end(payload);
  });
}

/** An error before the connection was established: no byte of the request can have left. */
export function brokenOutcome(error: Error, where: string): Outcome {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.message;
  if (code === 'ECONNREFUSED') return { kind: 'broken', code, sent: false };
  return { kind: 'broken', code: `${code} ${where}`, sent: true };
}

/** Reads the one monotonic clock of the history. */
export function nowNanos(): number {
  return Number(process.hrtime.bigint());
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
