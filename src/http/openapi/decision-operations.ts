/** What users' services ask for, described. */
import {
  COST_MAX,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  USER_ID_BYTES_MAX,
} from '../../api/request.ts';
import { DENY_STATUSES } from '../forwarded-request.ts';
import type { Operation, Parameter } from './operation.ts';
import { integer, oneOf, text } from './schema.ts';

const group = 'Decisions';
const RECEIPT = { partition: 2, term: 1, index: 3, position: 0, timeMillis: 1_795_231_945_653 };
const GRANT = {
  allowed: true,
  limit: 100,
  remaining: 99,
  resetMillis: 60_037,
  rule: 'default',
  key: 'user=ada',
  rulesVersion: 1,
  decided: RECEIPT,
};
const DENIAL = {
  allowed: false,
  limit: 100,
  remaining: 0,
  resetMillis: 60_037,
  retryAfterMillis: 12_345,
  rule: 'default',
  key: 'user=ada',
  rulesVersion: 1,
  decided: { partition: 2, term: 1, index: 103, timeMillis: 1_795_231_950_000 },
  error: {
    type: 'rate_limit_error',
    message: 'Rate limit of 100 per 60s exceeded. Retry after 13 s.',
    retry_after: 13,
    limit: 100,
    window: '60s',
  },
};
const UNAVAILABLE = {
  type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
  title: 'Temporary Reduced Capacity',
  status: 503,
  detail: 'no node could decide for this user before the deadline',
  allowed: false,
  reason: 'no_leader',
  proposed: false,
};
const FAULT = {
  allowed: false,
  error: { type: 'invalid_request', field: 'cost', message: `cost must be an integer from 1 to ${COST_MAX}` },
};
const STANDING = { rule: 'default', limit: 100, windowMillis: 60_000, remaining: 58, resetMillis: 41_000 };
const STANDS = { key: 'user=ada', rulesVersion: 1, limits: [STANDING], decided: RECEIPT };
export const USER_ID: Parameter = {
  name: 'userId',
  in: 'path',
  schema: text(USER_ID_BYTES_MAX, 'stands for the key `user={userId}`'),
};
const KEY: Parameter = {
  name: 'key',
  in: 'path',
  schema: text(KEY_BYTES_MAX, 'what a rule counts by, such as `user=ada`'),
};
const RULE: Parameter = { name: 'rule', in: 'query', schema: text(RULE_ID_BYTES_MAX) };
const FAILED = {
  400: { is: 'Fault', example: FAULT },
  503: { is: 'Unavailable', example: UNAVAILABLE },
} as const;
const DECIDED = {
  200: { is: 'Grant', example: GRANT },
  403: {
    is: 'Blocked',
    example: {
      allowed: false,
      blocked: true,
      decided: RECEIPT,
      error: { type: 'blocked', message: 'Blocked by an operator. Waiting does not help.' },
    },
  },
  429: { is: 'Denial', example: DENIAL },
  ...FAILED,
} as const;
const CONFLICT = { 422: { is: 'Fault' } } as const;
const REFUNDED = { refunded: true, rule: 'default', cost: 1, rulesVersion: 1, decided: RECEIPT };

export const DECISION_OPERATIONS: Readonly<Record<string, Operation>> = {
  'POST /v1/allow': {
    group,
    summary: 'May it go on?',
    description:
      'One request for a grant. Where `http.userHeader` is set and the request has that header, `userId` may be absent, and so may the body.',
    body: { is: 'AllowRequest', example: { userId: 'ada', cost: 1, requestId: '5f0c' } },
    isBodyOptional: true,
    answers: { ...DECIDED, ...CONFLICT },
  },
  'POST /v1/allow/batch': {
    group,
    summary: 'Many requests for grants at once, each decided for itself',
    body: {
      is: 'BatchRequest',
      example: { requests: [{ userId: 'ada' }, { descriptors: { user: 'bob', ip: '10.1.2.3' } }] },
    },
    answers: {
      200: {
        is: 'BatchAnswer',
        example: {
          answers: [
            { status: 200, ...GRANT },
            { status: 429, ...DENIAL },
          ],
        },
      },
      ...FAILED,
    },
  },
  'GET /v1/forward-auth': {
    group,
    summary: 'A gateway asks before it passes a request on',
    description:
      'Who it is comes from the header `http.userHeader`, else from `X-Forwarded-For` of `http.trustedProxies`. Without `rule`, `X-Forwarded-Method` and `X-Forwarded-Uri` must say what it is.',
    parameters: [
      {
        name: 'deny_status',
        in: 'query',
        schema: oneOf(DENY_STATUSES),
        description: 'of a denial; nginx wants 403',
      },
      RULE,
      { name: 'cost', in: 'query', schema: integer(1, COST_MAX) },
      { name: 'request_id', in: 'query', schema: text(REQUEST_ID_BYTES_MAX) },
      { name: 'X-Forwarded-For', in: 'header', schema: { type: 'string' } },
      { name: 'X-Forwarded-Method', in: 'header', schema: { type: 'string' } },
      { name: 'X-Forwarded-Uri', in: 'header', schema: { type: 'string' } },
    ],
    answers: { ...DECIDED, ...CONFLICT },
  },
  'POST /json': {
    group,
    summary: "Envoy's rate limit protocol, as envoyproxy/ratelimit takes it in JSON",
    description: 'A `RateLimitRequest` of RLS v3 by the mapping of protocol buffers to JSON; see src/rls.',
    body: { is: { type: 'application/json' } },
    answers: {
      200: { is: { type: 'application/json' } },
      400: { is: { type: 'text/plain' } },
      401: { is: { type: 'text/plain' } },
      403: { is: { type: 'text/plain' } },
      429: { is: { type: 'application/json' } },
      503: { is: { type: 'text/plain' } },
    },
  },
  'GET /v1/keys/:key': {
    group,
    summary: 'How does a key stand? Nothing is counted',
    parameters: [KEY, RULE],
    answers: { 200: { is: 'Standing', example: STANDS }, ...FAILED },
  },
  'GET /v1/users/:userId': {
    group,
    summary: 'The same of the key of a user',
    parameters: [USER_ID, RULE],
    answers: { 200: { is: 'Standing', example: { userId: 'ada', ...STANDS } }, ...FAILED },
  },
  'POST /v1/users/:userId/refunds': {
    group,
    summary: 'Take back what was granted under a requestId',
    parameters: [USER_ID],
    body: { is: 'RefundRequest', example: { requestId: '5f0c' } },
    answers: { 200: { is: 'Refunded', example: REFUNDED }, 404: { is: 'NotRefunded' }, ...FAILED },
  },
  'POST /v1/refunds': {
    group,
    summary: 'The same of a request with descriptors',
    body: { is: 'DescribedRefundRequest', example: { requestId: '5f0c', descriptors: { user: 'ada' } } },
    answers: {
      200: { is: 'Refunded', example: { ...REFUNDED, kept: [] } },
      404: { is: 'NotRefunded' },
      ...FAILED,
    },
  },
};
