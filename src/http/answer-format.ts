/** An answer of the router as an HTTP response: status, headers, body. Pure; the wall clock is an argument. */
import type { Decision } from '../limiter/decision.ts';
import type { RoutedAnswer } from '../router/router.ts';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const PROBLEM_TYPES = 'https://iana.org/assignments/http-problem-types';
export const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_JSON_TYPE = 'application/problem+json; charset=utf-8';

const UNAVAILABLE_DETAIL = {
  no_leader: 'no node could decide for this user before the deadline',
  deadline: 'the deciding node did not answer before the deadline',
  overloaded: 'too many requests are waiting for a decision',
  low_disk: 'the deciding node is short of disk space',
  at_capacity:
    'there is no room to remember another user or request id; those that are known are still served',
  starting: 'the node is starting, or the cluster has no rules yet',
  unknown_outcome: 'the deciding node was lost; whether the request was counted is not known',
  not_member: 'this node does not belong to the cluster; ask another one',
} as const;

/** @param wallMillis the edge's own clock, only for `X-RateLimit-Reset`, which is an epoch time by convention. */
export function formatAnswer(answer: RoutedAnswer, partition: number, wallMillis: number): HttpAnswer {
  switch (answer.kind) {
    case 'decision':
      return answer.decision.allowed
        ? formatGrant(answer.decision, partition, wallMillis)
        : formatDenial(answer.decision, partition, wallMillis);
    case 'invalid':
      // On the wire the field is called `rule`.
      return formatInvalid(answer.field === 'ruleId' ? 'rule' : answer.field, answer.message);
    case 'conflict':
      return formatConflict(answer.field, answer.message);
    case 'unavailable':
      return {
        status: 503,
        headers: { 'content-type': PROBLEM_JSON_TYPE, 'retry-after': '1' },
        body: {
          type: `${PROBLEM_TYPES}#temporary-reduced-capacity`,
          title: 'Temporary Reduced Capacity',
          status: 503,
          detail: UNAVAILABLE_DETAIL[answer.reason],
          allowed: false,
          reason: answer.reason,
          proposed: answer.proposed,
        },
      };
  }
}

function formatGrant(decision: Decision, partition: number, wallMillis: number): HttpAnswer {
  const { limit, remaining, resetMillis, ruleId: rule, decided } = decision;
  return {
    status: 200,
    headers: { 'content-type': JSON_TYPE, ...rateLimitHeaders(decision, wallMillis) },
    body: { allowed: true, limit, remaining, resetMillis, rule, decided: { partition, ...decided } },
  };
}

function formatDenial(decision: Decision, partition: number, wallMillis: number): HttpAnswer {
  const { limit, remaining, resetMillis, retryAfterMillis, windowMillis, ruleId: rule, decided } = decision;
  const retryAfter = Math.ceil(retryAfterMillis / 1000);
  const window = formatWindow(windowMillis);
  return {
    status: 429,
    headers: {
      'content-type': JSON_TYPE,
      ...rateLimitHeaders(decision, wallMillis),
      'retry-after': String(retryAfter),
    },
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

export function formatInvalid(field: string, message: string, status = 400): HttpAnswer {
  return {
    status,
    headers: { 'content-type': JSON_TYPE },
    body: { allowed: false, error: { type: 'invalid_request', field, message } },
  };
}

function formatConflict(field: string, message: string): HttpAnswer {
  return {
    status: 422,
    headers: { 'content-type': JSON_TYPE },
    body: { allowed: false, error: { type: 'request_id_reused', field, message } },
  };
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
