/** What operators say of rules and of single customers, described. */
import { KEY_BYTES_MAX } from '../../api/request.ts';
import { USER_ID } from './decision-operations.ts';
import type { Operation, Parameter } from './operation.ts';
import { text } from './schema.ts';

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  schema: { type: 'string', pattern: '^(\\*|"\\d{1,15}")$' },
  description: 'the `ETag` that was read: nothing is changed of another version',
};
const RULE_ID: Parameter = {
  name: 'ruleId',
  in: 'path',
  schema: { type: 'string' },
  description: 'a slash as %2F',
};
const KEY: Parameter = {
  name: 'key',
  in: 'path',
  schema: text(KEY_BYTES_MAX, 'a key that a limit counts by'),
};
const CUSTOMER_ID: Parameter = { name: 'customerId', in: 'path', schema: text(KEY_BYTES_MAX) };
const RULE = { id: 'default', limit: 100, windowMillis: 60_000, clock: 'request' };
const RULES = {
  version: 7,
  rules: [RULE],
  requestIdHorizonMillis: 120_000,
  clockDriftPpm: 500,
  partitionBytesMax: 268_435_456,
};
const CHANGED = {
  200: { is: 'RulesChanged', example: { version: 8, pending: [] } },
  202: { is: 'RulesChanged' },
} as const;
const RULE_FAILURES = {
  400: { is: 'Fault' },
  409: { is: 'Failure' },
  412: { is: 'Failure' },
  503: { is: 'Failure' },
} as const;
const RECEIPT = { partition: 2, term: 1, index: 57, position: 0, timeMillis: 1_795_231_945_653 };
const TERMS = { tier: 'pro', overrides: [{ rule: 'per-customer', limit: 500, burst: 1_000 }] };
const CUSTOMER = { version: 57, ...TERMS, blocked: false, decided: RECEIPT };
const CUSTOMER_FAILURES = { 400: { is: 'Fault' }, 412: { is: 'Fault' }, 503: { is: 'Unavailable' } } as const;
const OF_CUSTOMER = { 200: { is: 'Customer', example: { customer: 'acme', ...CUSTOMER } } } as const;
const OF_KEY = { 200: { is: 'Customer', example: { userId: 'customer=acme', ...CUSTOMER } } } as const;
const rules = { group: 'Rules' };
const customers = { group: 'Customers' };

export const RULE_OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /v1/rules': {
    ...rules,
    summary: 'The rules in force',
    answers: { 200: { is: 'Rules', example: RULES }, 503: { is: 'Failure' } },
  },
  'PUT /v1/rules': {
    ...rules,
    summary: 'Other rules in their place: a table, or a document',
    description: 'The document may also be the body itself, as application/yaml or text/yaml.',
    parameters: [IF_MATCH],
    body: { is: 'RulesRequest', example: { rules: [RULE] } },
    answers: { ...CHANGED, ...RULE_FAILURES },
  },
  'GET /v1/rules/*': {
    ...rules,
    summary: 'One rule of those in force',
    parameters: [RULE_ID],
    answers: { 200: { is: 'OneRuleRequest', example: RULE }, 404: { is: 'Failure' }, 503: { is: 'Failure' } },
  },
  'PUT /v1/rules/*': {
    ...rules,
    summary: 'One rule put in its place, or added',
    parameters: [RULE_ID, IF_MATCH],
    body: { is: 'OneRuleRequest', example: { limit: 200, windowMillis: 60_000, clock: 'request' } },
    answers: { ...CHANGED, ...RULE_FAILURES },
  },
  'DELETE /v1/rules/*': {
    ...rules,
    summary: 'One rule taken out',
    parameters: [RULE_ID, IF_MATCH],
    answers: { ...CHANGED, ...RULE_FAILURES, 404: { is: 'Failure' } },
  },
  'GET /v1/customers/:customerId': {
    ...customers,
    summary: 'What is so of one customer only',
    parameters: [CUSTOMER_ID],
    answers: { ...OF_CUSTOMER, 404: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'PUT /v1/customers/:customerId': {
    ...customers,
    summary: 'Its tier, limits of its own, and whether it is blocked',
    parameters: [CUSTOMER_ID, IF_MATCH],
    body: { is: 'CustomerRequest', example: TERMS },
    answers: { ...OF_CUSTOMER, ...CUSTOMER_FAILURES },
  },
  'DELETE /v1/customers/:customerId': {
    ...customers,
    summary: 'All of that taken away',
    parameters: [CUSTOMER_ID, IF_MATCH],
    answers: { 200: { is: 'Customer' }, ...CUSTOMER_FAILURES },
  },
  'PUT /v1/users/:userId/block': {
    ...customers,
    summary: 'Everything of a key is denied',
    parameters: [USER_ID],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'PUT /v1/keys/:key/block': {
    ...customers,
    summary: 'Everything of a key is denied',
    parameters: [KEY],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'DELETE /v1/users/:userId/block': {
    ...customers,
    summary: 'No more than the rules deny',
    parameters: [USER_ID],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'DELETE /v1/keys/:key/block': {
    ...customers,
    summary: 'No more than the rules deny',
    parameters: [KEY],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'POST /v1/users/:userId/reset': {
    ...customers,
    summary: 'What a key was granted is forgotten',
    parameters: [USER_ID],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
  'POST /v1/keys/:key/reset': {
    ...customers,
    summary: 'What a key was granted is forgotten',
    parameters: [KEY],
    answers: { ...OF_KEY, 400: { is: 'Fault' }, 503: { is: 'Unavailable' } },
  },
};
