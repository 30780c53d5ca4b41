/** The bounds in docs/openapi.json are exactly those that requests are checked by. */
import { describe, expect, it } from 'vitest';
import { CPU_PROFILE_SECONDS_MAX } from '../../../src/api/api-listener.ts';
import { CLOCK_STATES } from '../../../src/api/cluster-report.ts';
import { BLOCK_MILLIS_MAX, OVERRIDES_MAX, TIER_BYTES_MAX } from '../../../src/api/customer-record.ts';
import {
  DESCRIPTOR_NAME_BYTES_MAX,
  DESCRIPTOR_VALUE_BYTES_MAX,
  DESCRIPTORS_MAX,
} from '../../../src/api/question.ts';
import { NODE_ID_MAX, LABEL, LABEL_CHARACTERS_MAX } from '../../../src/api/node-address.ts';
import { UNAVAILABLE_REASONS } from '../../../src/api/refusals.ts';
import {
  COST_MAX,
  KEY_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
  RULE_ID_BYTES_MAX,
  TIMESTAMP_MILLIS_MAX,
  USER_ID_BYTES_MAX,
} from '../../../src/api/request.ts';
import {
  FIXED_LIMIT_MAX,
  GRANULARITY_MILLIS_MAX,
  LIMIT_MAX,
  RULE_CLOCKS,
  RULE_METERS,
  WINDOW_MILLIS_MAX,
} from '../../../src/api/rule.ts';
import { ROLES, TOKEN_NAME_BYTES_MAX } from '../../../src/api/token.ts';
import { USAGE_MINUTES_MAX, USAGE_COLUMNS, USAGE_OUTCOMES, USAGE_TOP_MAX } from '../../../src/api/usage.ts';
import { VERSIONS } from '../../../src/api/versions.ts';
import { BATCH_MAX } from '../../../src/http/batch-route.ts';
import { DENY_STATUSES } from '../../../src/http/forward-auth-route.ts';
import {
  CLOCK_DRIFT_PPM_MAX,
  PARTITION_BYTES_MAX,
  PARTITION_BYTES_MIN,
  REQUEST_ID_HORIZON_MILLIS_MAX,
  RULES_MAX,
} from '../../../src/limiter/rules.ts';
import { DOCUMENT, type Schema, SCHEMAS } from './described.ts';

/** The bounds by their path in the document, without the common prefix. */
const BOUNDS: Readonly<Record<string, unknown>> = {
  '/v1/forward-auth.get.deny_status enum': DENY_STATUSES,
  '/v1/forward-auth.get.cost maximum': COST_MAX,
  '/v1/tokens/{tokenId}.delete.open enum': ['true'],
  '/v1/debug/cpu-profile.post.seconds maximum': CPU_PROFILE_SECONDS_MAX,
  '/v1/usage.get.minutes maximum': USAGE_MINUTES_MAX,
  '/v1/usage.get.top maximum': USAGE_TOP_MAX,
  'AllowRequest.timestampMillis maximum': TIMESTAMP_MILLIS_MAX,
  'AllowRequest.cost maximum': COST_MAX,
  'AllowRequest.requestId maxLength': REQUEST_ID_BYTES_MAX,
  'BatchRequest.requests maxItems': BATCH_MAX,
  'Descriptors maxProperties': DESCRIPTORS_MAX,
  'Descriptors.propertyNames maxLength': DESCRIPTOR_NAME_BYTES_MAX,
  'Descriptors.additionalProperties maxLength': DESCRIPTOR_VALUE_BYTES_MAX,
  'BesideUser.0 maxProperties': DESCRIPTORS_MAX - 1,
  'NamedRule maxLength': RULE_ID_BYTES_MAX,
  'UserId maxLength': USER_ID_BYTES_MAX,
  'CustomerId maxLength': KEY_BYTES_MAX - 'customer='.length,
  'Key maxLength': KEY_BYTES_MAX,
  'RequestId maxLength': REQUEST_ID_BYTES_MAX,
  'RuleId maxLength': RULE_ID_BYTES_MAX,
  'BlockRequest.durationMillis maximum': BLOCK_MILLIS_MAX,
  'UsedRequest.used maximum': FIXED_LIMIT_MAX,
  'CustomerRequest.durationMillis maximum': BLOCK_MILLIS_MAX,
  'CustomerRequest.tier maxLength': TIER_BYTES_MAX,
  'CustomerRequest.overrides maxItems': OVERRIDES_MAX,
  'CustomerRequest.overrides.limit maximum': LIMIT_MAX,
  'CustomerRequest.overrides.burst maximum': LIMIT_MAX,
  'Rule.limit maximum': FIXED_LIMIT_MAX,
  'Rule.windowMillis maximum': WINDOW_MILLIS_MAX,
  'Rule.clock enum': RULE_CLOCKS,
  'Rule.meter enum': RULE_METERS,
  'Rule.granularityMillis maximum': GRANULARITY_MILLIS_MAX,
  'Rule.calendar enum': ['month'],
  'Rule.burst maximum': LIMIT_MAX,
  'Rule.queue maximum': LIMIT_MAX,
  'RulesRequest.rules maxItems': RULES_MAX,
  'RulesRequest.requestIdHorizonMillis maximum': REQUEST_ID_HORIZON_MILLIS_MAX,
  'RulesRequest.clockDriftPpm maximum': CLOCK_DRIFT_PPM_MAX,
  'RulesRequest.partitionBytesMax minimum': PARTITION_BYTES_MIN,
  'RulesRequest.partitionBytesMax maximum': PARTITION_BYTES_MAX,
  'NodeId maximum': NODE_ID_MAX,
  'HostPort.host maxLength': 253,
  'HostPort.port maximum': 65_535,
  'Label maxLength': LABEL_CHARACTERS_MAX,
  'Label pattern': LABEL.source,
  ...(VERSIONS.min > 1 && { 'VersionRequest.version minimum': VERSIONS.min }),
  'VersionRequest.version maximum': VERSIONS.max,
  'TokenRequest.name maxLength': TOKEN_NAME_BYTES_MAX,
  'Role enum': ROLES,
  'Unavailable.reason enum': UNAVAILABLE_REASONS,
  'BatchAnswer.answers.status minimum': 200,
  'BatchAnswer.answers.status maximum': 599,
  'Usage.minutes maximum': USAGE_MINUTES_MAX,
  'Cluster.nodes.clock enum': [...CLOCK_STATES, null],
};
/** The patterns; the random bodies of `bodies.test.ts` check that the parsers have the same ones. */
const PATTERNS = ['IfMatch pattern', 'HostPort.host pattern', 'TokenRequest.name pattern'];

const STEPS =
  /^(?:components|schemas?|properties|paths|parameters|content|items|anyOf|responses|application\/json)$/;

function boundsIn(value: unknown, way: readonly string[] = []): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return {};
  const found: Record<string, unknown> = {};
  for (const [word, each] of Object.entries(value)) {
    const isBound =
      /^(?:max(?:imum|[A-Z]\w+)|enum|pattern)$/.test(word) || (/^min(?:imum|[A-Z])/.test(word) && each > 1);
    const { name } = (each ?? {}) as { readonly name?: unknown };
    const step = typeof name === 'string' && /^\d+$/.test(word) ? name : word;
    if (isBound) found[`${way.join('.')} ${word}`] = each;
    else if (word !== 'example')
      Object.assign(found, boundsIn(each, STEPS.test(step) ? way : [...way, step]));
  }
  return found;
}

function textsIn(value: unknown): readonly Schema[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = value as Schema;
  return [...(typeof own['maxLength'] === 'number' ? [own] : []), ...Object.values(own).flatMap(textsIn)];
}

describe('the bounds of the document', () => {
  it('are those by which the listener checks requests', () => {
    const found = boundsIn(DOCUMENT);
    for (const pattern of PATTERNS) {
      expect(found).toHaveProperty([pattern]);
      Reflect.deleteProperty(found, pattern);
    }
    expect(found).toEqual(BOUNDS);
  });

  it('are the same in its texts', () => {
    const said = textsIn(DOCUMENT).flatMap(({ description = '', minLength = 0, maxLength }) =>
      [...String(description).matchAll(/(\d+) to (\d+) bytes/g)].map(([, min, max]) => [
        [Number(min), Number(max)],
        [minLength, maxLength],
      ]),
    );
    expect(said.length).toBeGreaterThan(5);
    for (const [words, bounds] of said) expect(words).toEqual(bounds);
  });

  it('name every column of usage', () => {
    expect(SCHEMAS['Usage']).toMatchObject({
      properties: {
        rules: { items: { required: ['rule', ...USAGE_COLUMNS] } },
        history: { required: ['fromMillis', ...USAGE_OUTCOMES] },
      },
    });
  });
});
