/** Tests the frames of forwarded requests and answers: all fields are decoded, and malformed frames are refused. */
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { CONFLICT_FIELDS } from '../../src/api/answer.ts';
import type { CustomerRequest } from '../../src/api/customer.ts';
import type { Answer, BatchedRequest } from '../../src/api/user-request.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeSweep } from '../../src/limiter/log/command.ts';
import { entryOf } from '../limiter/harness.ts';
import { decodeAnswers, encodeAnswers, type ForwardedAnswer } from '../../src/wire/answers.ts';
import { FrameError } from '../../src/wire/frame.ts';
import { decodeRequests, encodeRequests, type ForwardedRequest } from '../../src/wire/requests.ts';

const natural = fc.oneof(fc.maxSafeNat(), fc.nat(200));
const above0 = natural.filter((millis) => millis > 0);
const limit = fc.record(
  {
    ruleId: fc.constantFrom('', 'a', 'b'),
    limit: natural,
    windowMillis: natural,
    remaining: natural,
    retryAfterMillis: natural,
    resetMillis: natural,
    restoredMillis: above0,
  },
  { requiredKeys: ['ruleId', 'limit', 'windowMillis', 'remaining', 'retryAfterMillis', 'resetMillis'] },
);
const answer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    kind: fc.constant('decision'),
    decision: fc.record(
      {
        allowed: fc.boolean(),
        ruleId: fc.string({ unit: 'grapheme' }),
        limit: natural,
        windowMillis: natural,
        remaining: natural,
        retryAfterMillis: natural,
        resetMillis: natural,
        waitMillis: above0,
        restoredMillis: above0,
        limits: fc.array(limit, { minLength: 2, maxLength: 4 }),
        decided: fc.record(
          { term: natural, index: natural, position: natural, timeMillis: natural },
          { requiredKeys: ['term', 'index', 'timeMillis'] },
        ),
        rulesVersion: natural,
      },
      {
        requiredKeys: [
          'allowed',
          'ruleId',
          'limit',
          'windowMillis',
          'remaining',
          'retryAfterMillis',
          'resetMillis',
          'decided',
          'rulesVersion',
        ],
      },
    ),
  }),
  fc.record({
    kind: fc.constant('conflict'),
    field: fc.constantFrom(...CONFLICT_FIELDS),
    message: fc.string({ unit: 'grapheme' }),
  }),
  fc.record({ kind: fc.constant('invalid'), field: fc.string(), message: fc.string({ unit: 'grapheme' }) }),
  fc.record({
    kind: fc.constant('unavailable'),
    reason: fc.constantFrom(...UNAVAILABLE_REASONS),
    proposed: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('notLeader'), leader: natural, term: natural }),
  fc.record({
    kind: fc.constant('refund'),
    refund: fc.record(
      {
        refunded: fc.boolean(),
        ruleId: fc.constantFrom('', 'a', 'b'),
        cost: natural,
        rulesVersion: natural,
        decided: fc.record({ term: natural, index: natural, timeMillis: natural }),
        attempt: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      },
      { requiredKeys: ['refunded', 'ruleId', 'cost', 'decided', 'rulesVersion'] },
    ),
  }),
  fc.record({
    kind: fc.constant('keyStatus'),
    keyStatus: fc.record({
      limits: fc.array(limit, { maxLength: 4 }),
      decided: fc.record({ term: natural, index: natural, timeMillis: natural }),
      rulesVersion: natural,
    }),
  }),
);
const recorded = {
  version: natural,
  tier: fc.constantFrom('pro', 'é'),
  overrides: fc.constantFrom([], [{ ruleId: 'r', limit: 0, burst: 3 }]),
};
const record = fc.oneof(
  fc.record(
    { ...recorded, isBlocked: fc.boolean() },
    { requiredKeys: ['version', 'isBlocked', 'overrides'] },
  ),
  fc.record({ ...recorded, isBlocked: fc.constant(true), blockedUntilMillis: fc.integer({ min: 1 }) }),
);
const reported: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    kind: fc.constant('customer'),
    outcome: fc.record({
      isDone: fc.boolean(),
      record,
      decided: fc.record({ term: natural, index: natural, timeMillis: natural }),
    }),
  }),
  fc.record({
    kind: fc.constant('unavailable'),
    reason: fc.constant('customer_changed'),
    proposed: fc.boolean(),
    record,
  }),
);
const answers: fc.Arbitrary<ForwardedAnswer[]> = fc.array(
  fc.record({ id: natural, answer: fc.oneof(answer, reported) }),
  {
    maxLength: 5,
  },
);
const peek = fc.record({
  ask: fc.constant('peek'),
  userId: fc.string({ minLength: 1, unit: 'binary' }),
  ruleId: fc.constantFrom(undefined, 'r'),
});
const override = fc.record(
  { ruleId: fc.constantFrom('r'), limit: fc.nat(9), burst: fc.integer({ min: 1, max: 9 }) },
  { requiredKeys: ['ruleId', 'limit'] },
);
const terms = { tier: fc.constantFrom('pro', 'é'), overrides: fc.array(override, { maxLength: 1 }) };
const operator: fc.Arbitrary<CustomerRequest> = fc.record({
  ask: fc.constant('customer'),
  userId: fc.constantFrom('ada', 'bob'),
  action: fc.oneof(
    fc.constantFrom({ type: 'read' } as const, { type: 'reset' } as const),
    fc.record({ type: fc.constant('block'), isBlocked: fc.boolean() }),
    fc.record({ type: fc.constant('set'), ruleIds: fc.constantFrom(['r'], ['r', 'é']), used: fc.nat(300) }),
    fc.record({
      type: fc.constant('block'),
      isBlocked: fc.constant(true),
      durationMillis: fc.integer({ min: 1, max: 9_000 }),
    }),
    fc.record({ type: fc.constant('put'), ...terms, isBlocked: fc.boolean(), ifVersion: fc.nat(300) }),
  ),
});
const requests: fc.Arbitrary<ForwardedRequest[]> = fc.array(
  fc.record({
    id: natural,
    budgetMillis: natural,
    partition: fc.nat(3),
    relayTo: fc.constantFrom(0, 0, 3),
    request: fc.oneof(
      peek,
      operator,
      fc.record({
        ask: fc.constant('refund'),
        userId: fc.string({ minLength: 1, unit: 'binary' }),
        requestId: fc.string({ minLength: 1 }),
      }),
      fc.record(
        {
          userId: fc.string({ minLength: 1, unit: 'binary' }),
          ruleId: fc.string({ minLength: 1, maxLength: 9, unit: 'binary' }),
          cost: fc.integer({ min: 1, max: 1_000_000 }),
          timestampMillis: fc.nat({ max: 8_640_000_000_000_000 }),
          requestId: fc.string({ minLength: 1 }),
          guard: fc.record({ userId: fc.constant('customer=ada'), version: natural }),
        },
        { requiredKeys: ['userId'] },
      ),
    ),
  }),
  { maxLength: 9 },
);

/** A request without a cost has a cost of 1. */
function meant(requests: readonly ForwardedRequest[]): unknown[] {
  return requests.map(({ request, ...rest }) => ({
    ...rest,
    request: request.ask !== undefined ? request : { ...request, cost: request.cost ?? 1 },
  }));
}

describe('requests', () => {
  it('are decoded with every field, in their order', () => {
    fc.assert(
      fc.property(requests, (sent) => {
        expect(meant(decodeRequests(encodeRequests(sent)))).toEqual(meant(sent));
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  it('have the bytes of a log entry', () => {
    const request = { userId: 'ada', ruleId: 'r', cost: 2, timestampMillis: 9, requestId: 'q' };
    const payload = encodeRequests([{ id: 7, budgetMillis: 90, partition: 4, relayTo: 3, request }]);
    const entry = entryOf([request]);
    expect([...payload]).toEqual([1, 7, 90, 4, 3, 0, 0, 0, entry.length, ...entry]);
  });

  it('contain the rule version that they were matched by', () => {
    const request = {
      userId: 'ada',
      ruleId: 'r',
      requestId: 'q',
      askedDigest: 5,
      attempt: 9,
      matchedBy: 3,
      further: [{ userId: 'net', ruleId: 's', cost: 2, settle: true as const }],
    };
    const sent = [
      { id: 7, budgetMillis: 90, partition: 4, relayTo: 3, request },
      { id: 8, budgetMillis: 90, partition: 4, relayTo: 3, request: { userId: 'ada' } },
      {
        id: 9,
        budgetMillis: 90,
        partition: 4,
        relayTo: 3,
        request: { userId: 'eve', settle: true as const },
      },
    ];
    expect(decodeRequests(encodeRequests(sent))).toEqual(sent);
  });
});

describe('answers', () => {
  it('are decoded with every field', () => {
    fc.assert(
      fc.property(answers, (sent) => {
        expect(decodeAnswers(encodeAnswers(sent))).toEqual(sent);
      }),
      { seed: 11, numRuns: 300 },
    );
  });
});

describe('a malformed payload', () => {
  const entry = entryOf([{ userId: 'ada' }, { userId: 'bob' }]);
  const ways = [2, 1, 90, 4, 0, 0, 2, 90, 5, 3, 0, 0];
  const payload = Buffer.from([...ways, 1, 1, entry.length, ...entry]);
  const request = { id: 1, budgetMillis: 1, partition: 1, relayTo: 0, request: { userId: 'ada' } };
  const decided = {
    allowed: true,
    ruleId: 'r',
    limit: 1,
    windowMillis: 1,
    remaining: 0,
    retryAfterMillis: 0,
    resetMillis: 1,
  };
  const decision = { ...decided, decided: { term: 1, index: 1, timeMillis: 1 }, rulesVersion: 1 };

  const checking = (peeks: readonly number[], requests: readonly BatchedRequest[]): Buffer => {
    const batch = entryOf(requests);
    return Buffer.from([...ways, peeks.length, ...peeks, batch.length, ...batch]);
  };

  it('of requests is a FrameError', () => {
    expect(decodeRequests(payload)).toHaveLength(2);
    for (let length = 0; length < payload.length; length += 1)
      expect(() => decodeRequests(payload.subarray(0, length))).toThrow(FrameError);
    expect(() => decodeRequests(Buffer.concat([payload, Buffer.alloc(1)]))).toThrow(FrameError);
    for (const other of [entryOf([{ userId: 'ada' }]), encodeSweep(), entry.subarray(1)]) {
      expect(() => decodeRequests(Buffer.from([...ways, 0, other.length, ...other]))).toThrow(FrameError);
    }
  });

  it('of peeks is a FrameError: for an unknown index, a repeated one, and a request for a grant', () => {
    const two = [{ userId: 'ada' }, { userId: 'bob', ruleId: 'r', cost: 2, timestampMillis: 1 }];
    expect(decodeRequests(checking([0, 1], two))).toMatchObject([
      { request: { ask: 'peek', userId: 'ada' } },
      { request: { ask: 'peek', userId: 'bob', ruleId: 'r', cost: 2, timestampMillis: 1 } },
    ]);
    for (const peeks of [[2], [0, 0], [1, 0]])
      expect(() => decodeRequests(checking(peeks, two))).toThrow(FrameError);
    const refund = { ask: 'refund', userId: 'bob', requestId: 'q' } as const;
    expect(() => decodeRequests(checking([1], [two[0]!, refund]))).toThrow(FrameError);
    for (const more of [{ requestId: 'q' }, { settle: true } as const])
      expect(() => decodeRequests(checking([1], [two[0]!, { ...two[1]!, ...more }]))).toThrow(FrameError);
  });

  it('of answers is a FrameError', () => {
    const answered = encodeAnswers([
      { id: 1, answer: { kind: 'decision', decision } },
      { id: 2, answer: { kind: 'decision', decision } },
      { id: 3, answer: { kind: 'unavailable', reason: 'no_leader', proposed: false } },
      { id: 4, answer: { kind: 'invalid', field: 'cost', message: 'é' } },
    ]);
    expect(decodeAnswers(answered)).toHaveLength(4);
    for (let length = 0; length < answered.length; length += 1)
      expect(() => decodeAnswers(answered.subarray(0, length))).toThrow(FrameError);
    expect(() => decodeAnswers(Buffer.concat([answered, Buffer.alloc(1)]))).toThrow(FrameError);
    // An unknown kind; an unknown rule; an invalid flag; invalid text.
    for (const bytes of [
      [1, 1, 9],
      [1, 1, 0, 1, 1],
      [1, 1, 2, 0, 2],
      [1, 1, 1, 1, 0xff, 0],
    ])
      expect(() => decodeAnswers(Buffer.from(bytes))).toThrow(FrameError);
  });

  it('of any bytes is a FrameError or harmless', () => {
    const good = [payload, encodeAnswers([{ id: 1, answer: { kind: 'decision', decision } }])];
    const damaged = fc.tuple(fc.constantFrom(...good), fc.nat(), fc.nat(255)).map(([bytes, at, byte]) => {
      const copy = Buffer.from(bytes);
      copy[at % copy.length] = byte;
      return copy;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 40 }), damaged), (bytes) => {
        for (const decode of [decodeRequests, decodeAnswers]) {
          let error: unknown;
          try {
            decode(bytes);
          } catch (thrown) {
            error = thrown;
          }
          expect(error === undefined || error instanceof FrameError).toBe(true);
        }
      }),
      { seed: 12, numRuns: 2_000 },
    );
  });

  it('is not caused by an encoder that threw before', () => {
    const tooLong = { ...request, request: { userId: 'x'.repeat(1_025) } };
    expect(() => encodeRequests([request, tooLong])).toThrow(RangeError);
    expect(decodeRequests(encodeRequests([request]))).toMatchObject([request]);
  });
});
