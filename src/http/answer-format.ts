/** An answer as an HTTP response: status, headers, body. Pure; the wall clock is an argument. */
import type { AllowAnswer, Decision, Invalid } from '../api/answer.ts';
import {
  ALLOW_STATUS,
  UNAVAILABLE,
  UNAVAILABLE_RETRY_SECONDS,
  type UnavailableReason,
} from '../api/refusals.ts';
import { type HttpAnswer, JSON_TYPE } from './http-answer.ts';

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types';
const PROBLEM_JSON_TYPE = 'application/problem+json; charset=utf-8';

/** Status and body of an answer, which are the same wherever it stands. */
interface FormattedBody {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** @param wallMillis the edge's own clock, only for `X-RateLimit-Reset`, which is an epoch time by convention. */
export function formatAnswer(answer: AllowAnswer, partition: number, wallMillis: number): HttpAnswer {
  return { ...formatBody(answer, partition), headers: headersOf(answer, wallMillis) };
}

/** As it stands in a batch, too: `allowed` is in every body, and true in those of grants alone. */
export function formatBody(answer: AllowAnswer, partition: number): FormattedBody {
  switch (answer.kind) {
    case 'decision':
      return answer.decision.allowed
        ? formatGrant(answer.decision, partition)
        : formatDenial(answer.decision, partition);
    case 'invalid':
      return formatFault(ALLOW_STATUS.invalid, 'invalid_request', answer);
    case 'conflict':
      return formatFault(
        ALLOW_STATUS.conflict,
        answer.field === 'requestId' ? 'request_id_refunded' : 'request_id_reused',
        answer,
      );
    case 'unavailable':
      return formatUnavailable(answer.reason, answer.proposed);
  }
}

function headersOf(answer: AllowAnswer, wallMillis: number): Record<string, string> {
  switch (answer.kind) {
    case 'decision': {
      const { decision } = answer;
      const retryAfter = decision.allowed ? {} : { 'retry-after': String(retryAfterSeconds(decision)) };
      return { 'content-type': JSON_TYPE, ...rateLimitHeaders(decision, wallMillis), ...retryAfter };
    }
    case 'invalid':
    case 'conflict':
      return { 'content-type': JSON_TYPE };
    case 'unavailable':
      return { 'content-type': PROBLEM_JSON_TYPE, 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
  }
}

function formatGrant(decision: Decision, partition: number): FormattedBody {
  const { limit, remaining, resetMillis, waitMillis, ruleId: rule, decided } = decision;
  const wait = waitMillis === undefined ? {} : { waitMillis };
  return {
    status: ALLOW_STATUS.granted,
    body: { allowed: true, limit, remaining, resetMillis, ...wait, rule, decided: { partition, ...decided } },
  };
}

function retryAfterSeconds({ retryAfterMillis }: Decision): number {
  return Math.ceil(retryAfterMillis / 1000);
}

function formatDenial(decision: Decision, partition: number): FormattedBody {
  const { limit, remaining, resetMillis, retryAfterMillis, windowMillis, ruleId: rule, decided } = decision;
  const retryAfter = retryAfterSeconds(decision);
  const window = formatWindow(windowMillis);
  return {
    status: ALLOW_STATUS.denied,
    body: {
      allowed: false,
      limit,
      remaining,
      resetMillis,
      retryAfterMillis,
      rule,
      decided: { partition, ...decided },
      error: {
        type: 'rate_limit_error',
        message: `Rate limit of ${limit} per ${window} exceeded. Retry after ${retryAfter} s.`,
        retry_after: retryAfter,
        limit,
        window,
      },
    },
  };
}

function formatUnavailable(reason: UnavailableReason, proposed: boolean): FormattedBody {
  const status = ALLOW_STATUS.unavailable;
  return {
    status,
    body: {
      type: `${PROBLEM_TYPES}#temporary-reduced-capacity`,
      title: 'Temporary Reduced Capacity',
      status,
      detail: UNAVAILABLE[reason].text,
      allowed: false,
      reason,
      proposed,
    },
  };
}

/** Something is wrong with the request, wherever that was found. */
export function formatInvalid(
  field: string,
  message: string,
  status: number = ALLOW_STATUS.invalid,
): HttpAnswer {
  return {
    ...formatFault(status, 'invalid_request', { field, message }),
    headers: { 'content-type': JSON_TYPE },
  };
}

function formatFault(
  status: number,
  type: string,
  { field, message }: Pick<Invalid, 'field' | 'message'>,
): FormattedBody {
  return { status, body: { allowed: false, error: { type, field, message } } };
}

/** The de-facto `X-RateLimit-*` fields, and the two of draft-ietf-httpapi-ratelimit-headers. */
function rateLimitHeaders(decision: Decision, wallMillis: number): Record<string, string> {
  const { limit, remaining, resetMillis, retryAfterMillis, windowMillis, ruleId } = decision;
  const name = structuredString(ruleId);
  // Seconds within which no more than `r` can be used: until the oldest grant leaves, if nothing is left.
  const effectiveWindowMillis = remaining === 0 && retryAfterMillis > 0 ? retryAfterMillis : resetMillis;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(Math.ceil((wallMillis + resetMillis) / 1000)),
    'ratelimit-policy': `${name};q=${limit};w=${Math.ceil(windowMillis / 1000)}`,
    ratelimit: `${name};r=${remaining};t=${Math.ceil(effectiveWindowMillis / 1000)}`,
  };
}

/** RFC 9651 strings hold printable ASCII only; a rule id may hold more. */
function structuredString(text: string): string {
  return `"${text.replace(/[^\u0020-\u007e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

function formatWindow(windowMillis: number): string {
  return windowMillis % 1000 === 0 ? `${windowMillis / 1000}s` : `${windowMillis}ms`;
}
