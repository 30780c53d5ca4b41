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
  // Only a node says this: then it asked none of them. Whoever stands in between may have passed them on.
  if (body?.['allowed'] !== false || status === 200 || status === 500) return all(unreadable(status));
  const { reason, proposed } = body;
  const error = isObject(body['error']) ? body['error'] : {};
  if (status === 503 || status === 408) {
    const why = [reason, error['type']].find((each) => typeof each === 'string') ?? `status_${status}`;
    return all({ kind: 'unavailable', reason: why, isProposed: proposed === true });
  }
  const message = typeof error['message'] === 'string' ? error['message'] : '';
  const place = status === 400 ? /^requests\[(\d+)\]\.?(.*)$/.exec(String(error['field'])) : null;
  if (place === null) return all({ kind: 'refused', status, message: `status ${status}: ${message}` });
  const [, wrong, field = ''] = place;
  return all({ kind: 'unavailable', reason: 'another_was_invalid', isProposed: false }).map((heard, i) =>
    i === Number(wrong) ? { kind: 'invalid', field, message } : heard,
  );
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
