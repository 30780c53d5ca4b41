/** What requests hold and answers say, as schemas. The bounds are those that `src/api` checks requests by. */
import { CLOCK_STATES } from '../../api/cluster-report.ts';
import { OVERRIDES_MAX, TIER_BYTES_MAX } from '../../api/customer-record.ts';
import {
  DESCRIPTOR_NAME_BYTES_MAX,
  DESCRIPTOR_VALUE_BYTES_MAX,
  DESCRIPTORS_MAX,
} from '../../api/question.ts';
import { NODE_ID_MAX } from '../../api/node-address.ts';
import { LABEL, LABEL_CHARACTERS_MAX } from '../../api/node-labels.ts';
import { UNAVAILABLE_REASONS } from '../../api/refusals.ts';
import {
  COST_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
  USER_ID_BYTES_MAX,
} from '../../api/request.ts';
import {
  GRANULARITY_MILLIS_MAX,
  LIMIT_MAX,
  RULE_CLOCKS,
  RULE_METERS,
  WINDOW_MILLIS_MAX,
} from '../../api/rule.ts';
import { ROLES, TOKEN_NAME_BYTES_MAX } from '../../api/token.ts';
import { USAGE_MINUTES_MAX, USAGE_OUTCOMES } from '../../api/usage.ts';
import { BATCH_MAX } from '../batch-route.ts';
import { asked, integer, list, oneOf, orNull, ref, type Schema, text, told } from './schema.ts';

const ANY: Schema = {};
const TEXT: Schema = { type: 'string' };
const FLAG: Schema = { type: 'boolean' };
const COUNT = integer(0);
const NODE = integer(1, NODE_ID_MAX);
const ONE_LABEL = { type: 'string', minLength: 1, maxLength: LABEL_CHARACTERS_MAX, pattern: LABEL.source };
const key: Schema = { ...TEXT, description: 'what the rule counts by, such as `user=ada`' };
const userId = text(USER_ID_BYTES_MAX, 'the descriptor `user`');
/** @param minProperties none are needed where a user is named, who is one of them */
const descriptors = (minProperties: 0 | 1): Schema => ({
  type: 'object',
  description: 'what the request is; the rules in force find its limits. A userId is one of them',
  minProperties,
  maxProperties: DESCRIPTORS_MAX,
  propertyNames: text(DESCRIPTOR_NAME_BYTES_MAX),
  additionalProperties: { type: 'string', maxLength: DESCRIPTOR_VALUE_BYTES_MAX },
});
const rule = text(
  RULE_ID_BYTES_MAX,
  'by this rule alone: one with `named: true`, or one that it states, such as `100/60000ms`',
);
const common = {
  rule: orNull(rule),
  timestampMillis: orNull(
    integer(0, TIMESTAMP_MILLIS_MAX, 'when it happened, for rules with the clock `request`'),
  ),
  cost: orNull(integer(1, COST_MAX, '1 if it is absent')),
  requestId: orNull(text(REQUEST_ID_BYTES_MAX, 'makes retries safe')),
};
const refunded = { requestId: text(REQUEST_ID_BYTES_MAX), rule: orNull(rule) };
const standing = {
  rule: TEXT,
  limit: COUNT,
  windowMillis: integer(1),
  remaining: COUNT,
  resetMillis: integer(0, undefined, 'until all of the limit is free again'),
  retryAfterMillis: integer(0, undefined, 'until a request of the same cost would be granted'),
};
const error = (type: Schema, more: Readonly<Record<string, Schema>> = {}): Schema =>
  told({ type, message: TEXT, ...more }, ['field']);
const hostPort = asked({ host: text(253), port: integer(1, 65_535) }, ['host', 'port']);
const override = asked(
  {
    rule: text(RULE_ID_BYTES_MAX),
    limit: integer(0, LIMIT_MAX),
    burst: integer(1, LIMIT_MAX, 'of a bucket'),
  },
  ['rule', 'limit'],
);
const columns = (schema: Schema): Record<string, Schema> =>
  Object.fromEntries(USAGE_OUTCOMES.map((name) => [name, schema]));

const REQUESTS = {
  AllowRequest: {
    description: 'userId is the descriptor `user`; the rules in force find the limits',
    anyOf: [
      asked({ userId, descriptors: orNull(descriptors(0)), ...common }, ['userId']),
      asked({ userId: orNull(userId), descriptors: descriptors(1), ...common }, ['descriptors']),
    ],
  },
  BatchRequest: asked({ requests: list(ref('AllowRequest'), { minItems: 1, maxItems: BATCH_MAX }) }, [
    'requests',
  ]),
  RefundRequest: asked({ requestId: text(REQUEST_ID_BYTES_MAX) }, ['requestId']),
  DescribedRefundRequest: {
    anyOf: [
      asked({ ...refunded, userId, descriptors: orNull(descriptors(0)) }, ['requestId', 'userId']),
      asked({ ...refunded, userId: orNull(userId), descriptors: descriptors(1) }, [
        'requestId',
        'descriptors',
      ]),
    ],
  },
  CustomerRequest: asked({
    tier: text(TIER_BYTES_MAX),
    overrides: list(override, { maxItems: OVERRIDES_MAX }),
    blocked: { ...FLAG, description: 'stays as it is if it is absent' },
  }),
  Rule: {
    ...asked(
      {
        id: text(RULE_ID_BYTES_MAX),
        of: text(RULE_ID_BYTES_MAX, 'the rule that it is a window of'),
        limit: integer(0, LIMIT_MAX),
        windowMillis: integer(1, WINDOW_MILLIS_MAX),
        clock: oneOf(RULE_CLOCKS),
        meter: oneOf(RULE_METERS),
        granularityMillis: integer(1, GRANULARITY_MILLIS_MAX),
        calendar: oneOf(['month']),
        burst: integer(1, LIMIT_MAX),
        queue: integer(0, LIMIT_MAX),
      },
      ['id', 'limit', 'windowMillis', 'clock'],
    ),
    description: 'of a table',
  },
  RulesRequest: {
    description: 'a table of rules, or a document: see rules.yaml',
    ...asked({
      rules: list(ref('Rule'), { minItems: 1, maxItems: 1_024 }),
      document: TEXT,
      requestIdHorizonMillis: integer(0),
      clockDriftPpm: integer(0),
      partitionBytesMax: integer(4_096),
    }),
  },
  OneRuleRequest: {
    type: 'object',
    description: 'the rule as a document or a table has it; its id is that of the address',
  },
  NodesRequest: asked({
    add: asked({ id: NODE, http: hostPort, peer: hostPort, zone: ONE_LABEL, host: ONE_LABEL }, [
      'id',
      'http',
      'peer',
    ]),
    remove: integer(1),
  }),
  LabelsRequest: { ...asked({ zone: orNull(ONE_LABEL), host: orNull(ONE_LABEL) }), minProperties: 1 },
  VersionRequest: asked({ version: integer(1) }, ['version']),
  TokenRequest: asked({ role: oneOf(ROLES), name: text(TOKEN_NAME_BYTES_MAX) }, ['role', 'name']),
} satisfies Record<string, Schema>;

const ANSWERS = {
  Receipt: {
    description: 'where a decision was made: partition and log position, and the time that it used',
    ...told({ partition: COUNT, term: COUNT, index: COUNT, position: COUNT, timeMillis: COUNT }, [
      'position',
    ]),
  },
  LimitStanding: told(standing, ['retryAfterMillis']),
  Grant: {
    description:
      'granted; or no rule limits it; or nobody could decide, and the fail mode of its rules lets it pass',
    anyOf: [
      told(
        {
          allowed: { const: true },
          limit: COUNT,
          remaining: COUNT,
          resetMillis: COUNT,
          waitMillis: integer(1, undefined, 'of a leaky bucket: until it may go on'),
          rule: TEXT,
          key,
          rulesVersion: COUNT,
          limits: list(ref('LimitStanding')),
          decided: ref('Receipt'),
        },
        ['limits', 'waitMillis', 'key'],
      ),
      told({ allowed: { const: true }, unlimited: { const: true }, rulesVersion: COUNT }),
      told({ allowed: { const: true }, degraded: { const: true }, rules: list(TEXT), rulesVersion: COUNT }),
    ],
  },
  Denial: {
    description: 'over the limit: nothing was counted',
    ...told(
      {
        allowed: { const: false },
        limit: COUNT,
        remaining: COUNT,
        resetMillis: COUNT,
        retryAfterMillis: COUNT,
        rule: TEXT,
        key,
        rulesVersion: COUNT,
        limits: list(ref('LimitStanding')),
        degraded: { const: true },
        decided: ref('Receipt'),
        error: error(
          { const: 'rate_limit_error' },
          { retry_after: integer(0, undefined, 'seconds'), limit: COUNT, window: TEXT },
        ),
      },
      ['limit', 'remaining', 'resetMillis', 'rule', 'key', 'limits', 'degraded', 'decided'],
    ),
  },
  Blocked: {
    description: 'blocked by an operator, or not allowed to ask',
    ...told({ allowed: { const: false }, blocked: { const: true }, error: error(TEXT) }, [
      'allowed',
      'blocked',
    ]),
  },
  Fault: {
    description: 'something is wrong with the request: `field` names it, `message` its bound',
    ...told({ allowed: { const: false }, error: error(TEXT, { field: TEXT }) }, ['allowed']),
  },
  Unavailable: {
    description: 'nobody can decide now; `proposed: false`: it certainly counted nowhere',
    ...told({
      type: TEXT,
      title: TEXT,
      status: { const: 503 },
      detail: TEXT,
      allowed: { const: false },
      reason: oneOf(UNAVAILABLE_REASONS),
      proposed: FLAG,
    }),
  },
  Failure: { description: 'why it was not done', ...told({ reason: TEXT, message: TEXT }) },
  BatchAnswer: told({ answers: list(told({ status: integer(200, 599), allowed: FLAG })) }),
  Standing: told(
    {
      userId: { ...TEXT, description: 'as the address has it' },
      key,
      blocked: { const: true },
      rulesVersion: COUNT,
      limits: list(ref('LimitStanding')),
      decided: ref('Receipt'),
    },
    ['userId', 'blocked'],
  ),
  Refunded: told(
    {
      refunded: { const: true },
      rule: TEXT,
      cost: integer(1),
      rulesVersion: COUNT,
      decided: ref('Receipt'),
      kept: list(told({ rule: TEXT, key: TEXT })),
    },
    ['kept'],
  ),
  NotRefunded: told({ refunded: { const: false }, error: error(TEXT, { field: TEXT }) }),
  Customer: told(
    {
      customer: TEXT,
      userId: TEXT,
      version: COUNT,
      tier: TEXT,
      overrides: list(told({ rule: TEXT, limit: COUNT, burst: COUNT }, ['burst'])),
      blocked: FLAG,
      decided: ref('Receipt'),
    },
    ['customer', 'userId', 'tier'],
  ),
  Rules: told(
    {
      version: COUNT,
      rules: list(ANY),
      requestIdHorizonMillis: COUNT,
      clockDriftPpm: COUNT,
      partitionBytesMax: COUNT,
      definitions: list(ANY),
    },
    ['definitions'],
  ),
  RulesChanged: told({ version: COUNT, pending: list(COUNT) }),
  Usage: told(
    {
      minutes: integer(1, USAGE_MINUTES_MAX),
      nodes: list(COUNT),
      silent: list(COUNT),
      rules: list(told({ rule: TEXT, ...columns(COUNT) })),
      history: told({ fromMillis: COUNT, ...columns(list(COUNT)) }),
      top: told({ fromMillis: COUNT, allowed: list(ANY), denied: list(ANY) }),
    },
    ['top'],
  ),
  Cluster: told(
    {
      self: told({ id: COUNT, standing: TEXT, reason: TEXT, refusedBy: list(ANY) }, ['reason']),
      nodes: list(
        told({
          id: COUNT,
          http: { type: ['string', 'null'] },
          up: FLAG,
          clock: { enum: [...CLOCK_STATES, null] },
        }),
      ),
      version: COUNT,
      settledVersion: COUNT,
      clusterVersion: COUNT,
      rules: { type: ['object', 'null'] },
      partitions: list(
        told(
          {
            id: COUNT,
            leader: COUNT,
            term: COUNT,
            commit: COUNT,
            placed: FLAG,
            wanted: list(NODE),
            replicas: list(ANY),
          },
          ['wanted'],
        ),
      ),
    },
    ['clusterVersion'],
  ),
  Leaders: told({
    nodes: list(told({ id: NODE, http: TEXT })),
    partitions: list(told({ leader: COUNT, term: COUNT })),
  }),
  Readiness: told({ status: TEXT }),
  Version: told({ version: COUNT }),
  Labelled: told({ node: NODE, version: COUNT }),
  Draining: told({ node: NODE, draining: FLAG }),
  Token: told(
    { id: TEXT, role: oneOf(ROLES), name: TEXT, createdMillis: COUNT, configured: { const: true } },
    ['createdMillis', 'configured'],
  ),
  NewToken: told(
    { id: TEXT, role: oneOf(ROLES), name: TEXT, createdMillis: COUNT, token: TEXT, pending: list(COUNT) },
    ['createdMillis'],
  ),
  Tokens: told({ tokens: list(ref('Token')) }),
  TokenRevoked: told({ id: TEXT, pending: list(COUNT) }),
} satisfies Record<string, Schema>;

export const SCHEMAS = { ...REQUESTS, ...ANSWERS };
export type SchemaName = keyof typeof SCHEMAS;
