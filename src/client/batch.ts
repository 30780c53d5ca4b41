/** A batch of requests as the body of `POST /v1/allow/batch`, and what its response says of each of them. Pure. */
import type { ExchangeResult } from './environment.ts';
import type { Heard } from './next-step.ts';
import { isObject, readAnswer } from './permit.ts';

export const ALLOW_BATCH = '/v1/allow/batch';
/** Nodes take bodies of 512 KiB. */
export const BATCH_BYTES_MAX = 500_000;

/** @param requests each as JSON */
export function batchBody(requests: readonly string[]): string {
  return `{"requests":[${requests.join(',')}]}`;
}

/** What was heard of each of `count` requests, in their order. */
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
 * What a node says that asked none of them. Undefined where it may not be a node that says so: whoever stands in between may have
 * passed them on. What is wrong with one request alone stands in its place among the answers.
 */
function readRefusal(status: number, body: Readonly<Record<string, unknown>> = {}): Heard | undefined {
  if (body['allowed'] !== false) return undefined;
  const { reason, proposed } = body;
  if (status === 503 && typeof reason === 'string' && typeof proposed === 'boolean')
    return { kind: 'unavailable', reason, isProposed: proposed };
  // A node that knew too little to ask anybody says neither.
  if ('reason' in body || 'proposed' in body || !isObject(body['error'])) return undefined;
  const { type, message } = body['error'];
  if (typeof type !== 'string' || typeof message !== 'string') return undefined;
  if (status === 503 || status === 408) return { kind: 'unavailable', reason: type, isProposed: false };
  if (status < 400 || status > 499) return undefined;
  return { kind: 'refused', status, message: `status ${status}: ${message}` };
}

function unreadable(status: number): Heard {
  const error = new Error(`an answer that cannot be read, of status ${status}`);
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
