/** Generators of the values in valid inputs: those of requests, rules and clusters, up to their bounds. */
import fc from 'fast-check';
import type { CustomerRequest } from '../../../src/api/customer.ts';
import type { CustomerRecord } from '../../../src/api/customer-record.ts';
import type { BatchedRequest } from '../../../src/api/user-request.ts';
import { LIMIT_MAX, type Rule, WINDOW_MILLIS_MAX } from '../../../src/api/rule.ts';
import { type RuleTable, validateRuleTable } from '../../../src/limiter/rules.ts';

/** Integers >= 0, often small or at the bounds of an encoding's width. */
export const natural = fc.oneof(
  fc.nat(200),
  fc.maxSafeNat(),
  fc.constantFrom(0x7f, 0x80, 0x3fff, 0x4000, 2 ** 31, 2 ** 32, 2 ** 53 - 1),
);
export const userId = fc.oneof(fc.constantFrom('a', 'b', 'ada'), shortText(12), fc.constant('u'.repeat(256)));
export const host = fc.constantFrom('127.0.0.1', 'node-1.example', '::1');
export const port = fc.integer({ min: 1, max: 65_535 });
export const address = fc.record({ host, port });
export const incarnation = fc.constantFrom('0123456789abcdef'.repeat(2), 'f'.repeat(32));

/** Well-formed text without a byte order mark. */
export function shortText(maxLength: number): fc.Arbitrary<string> {
  return fc.string({ minLength: 1, maxLength, unit: 'binary' }).filter((text) => !text.startsWith('\uFEFF'));
}

const ruleId = fc.constantFrom('default', 'a', 'ü', 'ü/day', 'r'.repeat(128));
const limit = fc.integer({ min: 1, max: LIMIT_MAX });
const windowMillis = fc.oneof(fc.integer({ min: 1, max: WINDOW_MILLIS_MAX }), fc.constantFrom(1_000, 60_000));
const clock = fc.constantFrom('request' as const, 'cluster' as const);

function ruleOf(id: string): fc.Arbitrary<Rule> {
  const of = id === 'ü/day' && { of: fc.constant('ü') };
  const common = { id: fc.constant(id), ...of, limit, windowMillis, clock };
  return fc.oneof(
    fc.record(common),
    fc.record({ ...common, granularityMillis: fc.constantFrom(1, 100), windowMillis: fc.constant(60_000) }),
    fc.record({ ...common, meter: fc.constantFrom('slidingCounter' as const, 'fixedWindow' as const) }),
    fc.record({
      ...common,
      windowMillis: fc.constantFrom(1_000, 60_000),
      meter: fc.constant('tokenBucket' as const),
    }),
    fc.record({
      ...common,
      windowMillis: fc.constantFrom(1_000, 60_000),
      meter: fc.constant('leakyBucket' as const),
    }),
  );
}

export const table: fc.Arbitrary<RuleTable> = fc
  .uniqueArray(ruleId, { minLength: 1, maxLength: 4 })
  .chain((ids) => fc.tuple(fc.integer({ min: 1, max: 1_000 }), ...ids.map(ruleOf)))
  .map(([version, ...rules]) => validateRuleTable({ version, rules }));

const cost = fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 1_000_000 }));
const requestId = shortText(9);
const askedDigest = fc.integer({ min: 1, max: 0xffff_ffff });

/** Commands that enter the log in batches. */
export const batchedRequest: fc.Arbitrary<BatchedRequest> = fc.oneof(
  fc.record({ userId }),
  fc.record({ userId, ruleId, guard: fc.record({ userId, version: fc.nat(2 ** 31) }) }),
  fc.record(
    {
      userId,
      ruleId,
      cost,
      timestampMillis: fc.nat(8_640_000_000_000_000),
      requestId,
      settle: fc.constant(true as const),
    },
    { requiredKeys: ['userId'] },
  ),
  fc.record({ ask: fc.constant('refund' as const), userId, requestId }),
  fc.record({
    userId,
    requestId,
    askedDigest,
    attempt: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  }),
  fc.record({
    userId: fc.constant('joint'),
    ruleId: fc.constant('a'),
    requestId,
    askedDigest,
    attempt: fc.constantFrom(1, Number.MAX_SAFE_INTEGER),
    further: fc.constantFrom(
      [{ userId: 'x', ruleId: 'ü' }],
      [{ userId: 'x', ruleId: 'ü', cost: 7, settle: true as const }],
    ),
  }),
  fc.record({ userId, ruleId, requestId, askedDigest, ifRemembered: fc.constant(true as const) }),
);

const overrides = fc.uniqueArray(
  fc.oneof(fc.record({ ruleId, limit }), fc.record({ ruleId, limit, burst: limit })),
  { maxLength: 3, selector: (override) => override.ruleId },
);

/** Operator commands for a key. */
export const customerRequest: fc.Arbitrary<CustomerRequest> = fc.record({
  ask: fc.constant('customer' as const),
  userId,
  action: fc.oneof(
    fc.constantFrom({ type: 'read' as const }, { type: 'reset' as const }, { type: 'delete' as const }),
    fc.record({ type: fc.constant('block' as const), isBlocked: fc.boolean() }),
    fc.record({
      type: fc.constant('set' as const),
      ruleIds: fc.uniqueArray(ruleId, { minLength: 1, maxLength: 3 }),
      used: fc.nat(9),
    }),
    fc.record({
      type: fc.constant('block' as const),
      isBlocked: fc.constant(true),
      durationMillis: fc.integer({ min: 1, max: 2 ** 31 }),
    }),
    fc.record(
      {
        type: fc.constant('put' as const),
        tier: shortText(9),
        overrides,
        isBlocked: fc.boolean(),
        ifVersion: fc.nat(2 ** 31),
      },
      { requiredKeys: ['type', 'overrides'] },
    ),
  ),
});

const recorded = { version: natural, tier: shortText(9), overrides };
export const customerRecord: fc.Arbitrary<CustomerRecord> = fc.oneof(
  fc.record(
    { ...recorded, isBlocked: fc.boolean() },
    { requiredKeys: ['version', 'overrides', 'isBlocked'] },
  ),
  fc.record({ ...recorded, isBlocked: fc.constant(true), blockedUntilMillis: fc.integer({ min: 1 }) }),
);

/** Bodies of `POST /v1/allow`. */
export const requestBody = fc.oneof(
  fc.record(
    { userId, rule: ruleId, cost, timestampMillis: fc.nat(8_640_000_000_000_000), requestId },
    { requiredKeys: ['userId'] },
  ),
  fc.record(
    {
      userId: fc.constant('ada'),
      descriptors: fc.constantFrom({ ip: '::1' }, { endpoint: '/a', tier: '' }),
      cost,
    },
    { requiredKeys: ['descriptors'] },
  ),
);
