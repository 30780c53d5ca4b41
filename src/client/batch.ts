/**
 * Builds the body of `POST /v1/allow/batch` from single requests, and splits the response into one result for each of
 * them. Pure functions.
 */
import type { ExchangeResult } from './environment.ts';
import type { Heard } from './next-step.ts';
import { isObject, readAnswer } from './permit.ts';

/** Path of the endpoint that takes a batch of requests. */
export const ALLOW_BATCH = '/v1/allow/batch';
/** Longest body that the client sends, in bytes. Nodes accept 512 KiB. */
export const BATCH_BYTES_MAX = 500_000;

/** @param requests each one as JSON text */
export function batchBody(requests: readonly string[]): string {
  return `{"requests":[${requests.join(',')}]}`;
}

/** Returns the result of each of the `count` requests of a batch, in the order in which they were sent. */
export function heardOf(result: ExchangeResult, count: number): readonly Heard[] {
  const all = (heard: Heard): readonly Heard[] => Array.from({ length: count }, () => heard);
  if (result.kind === 'failed') return all({ kind: 'silent', isSent: result.isSent, error: result.error });
  const { status } = result;
  const body = parsed(result.body);
  const answers = body?.['answers'];
  if (status === 200 && Array.isArray(answers) && answers.length === count)
    return answers.map((each: unknown) => readAnswer(each) ?? unreadable(status));
  return all(readRefusal(status, body) ?? unreadable(status));
}

/**
 * Reads a response that refuses the whole batch. An error in one single request is in the list of answers instead.
 * Returns undefined if the response does not have the form of a Quorate node: a proxy in between may have passed the
 * batch on, so the requests may have been counted.
 */
function readRefusal(status: number, body: Readonly<Record<string, unknown>> = {}): Heard | undefined {
  if (body['allowed'] !== false) return undefined;
  const { reason, proposed } = body;
  if (status === 503 && typeof reason === 'string' && typeof proposed === 'boolean')
    return { kind: 'unavailable', reason, isProposed: proposed };
  // A node that could not forward the batch at all sends neither of the two fields.
  if ('reason' in body || 'proposed' in body || !isObject(body['error'])) return undefined;
  const { type, message } = body['error'];
  if (typeof type !== 'string' || typeof message !== 'string') return undefined;
  if (status === 503 || status === 408) return { kind: 'unavailable', reason: type, isProposed: false };
  if (status < 400 || status > 499) return undefined;
  return { kind: 'refused', status, message: `status ${status}: ${message}` };
}

function unreadable(status: number): Heard {
  const error = new Error(`the answer cannot be read (HTTP status ${status})`);
  return { kind: 'silent', isSent: true, error };
}

function parsed(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
