/** Requests on their way to a leader and answers on their way back: all of it arrives, and nothing else is believed. */
import { UNAVAILABLE_REASONS } from '../../src/api/refusals.ts';
import { CONFLICT_FIELDS } from '../../src/api/answer.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeSweep } from '../../src/limiter/log/command.ts';
import { entryOf } from '../limiter/harness.ts';
import { type Answer } from '../../src/partition/answer.ts';
import { decodeAnswers, encodeAnswers, type ForwardedAnswer } from '../../src/wire/answers.ts';
import { pack, unpack } from '../../src/wire/fields.ts';
import { FrameError } from '../../src/wire/frame.ts';
import { decodeRequests, encodeRequests, type ForwardedRequest } from '../../src/wire/requests.ts';

const natural = fc.oneof(fc.maxSafeNat(), fc.nat(200));
const answer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    kind: fc.constant('decision'),
    decision: fc.record({
      allowed: fc.boolean(),
      ruleId: fc.string({ unit: 'grapheme' }),
      limit: natural,
      windowMillis: natural,
      remaining: natural,
      retryAfterMillis: natural,
      resetMillis: natural,
      decided: fc.record(
        { term: natural, index: natural, position: natural, timeMillis: natural },
        { requiredKeys: ['term', 'index', 'timeMillis'] },
      ),
    }),
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
);
const answers: fc.Arbitrary<ForwardedAnswer[]> = fc.array(fc.record({ id: natural, answer }), {
  maxLength: 5,
});
const requests: fc.Arbitrary<ForwardedRequest[]> = fc.array(
  fc.record({
    id: natural,
    budgetMillis: natural,
    partition: fc.nat(3),
    relayTo: fc.constantFrom(0, 0, 3),
    request: fc.record(
      {
        userId: fc.string({ minLength: 1, unit: 'binary' }),
        ruleId: fc.string({ minLength: 1, maxLength: 9, unit: 'binary' }),
        cost: fc.integer({ min: 1, max: 1_000_000 }),
        timestampMillis: fc.nat({ max: 8_640_000_000_000_000 }),
        requestId: fc.string({ minLength: 1 }),
      },
      { requiredKeys: ['userId'] },
    ),
  }),
  { maxLength: 9 },
);

/** No cost is a cost of 1. */
function meant(requests: readonly ForwardedRequest[]): unknown[] {
  return requests.map(({ request, ...rest }) => ({
    ...rest,
    request: { ...request, cost: request.cost ?? 1 },
  }));
}

describe('requests', () => {
  it('arrive with every field, in their order', () => {
    fc.assert(
      fc.property(requests, (sent) => {
        expect(meant(decodeRequests(encodeRequests(sent)))).toEqual(meant(sent));
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  it('travel in the bytes of a log entry', () => {
    const request = { userId: 'ada', ruleId: 'r', cost: 2, timestampMillis: 9, requestId: 'q' };
    const payload = encodeRequests([{ id: 7, budgetMillis: 900, partition: 4, relayTo: 3, request }]);
    const [ids, budgetsMillis, partitions, relayTos, batch] = unpack(payload) as [...unknown[], Uint8Array];
    expect([ids, budgetsMillis, partitions, relayTos]).toEqual([[7], [900], [4], [3]]);
    expect(Buffer.from(batch as Uint8Array)).toEqual(Buffer.from(entryOf([request])));
  });
});

describe('answers', () => {
  it('arrive with every field', () => {
    fc.assert(
      fc.property(answers, (sent) => {
        expect(decodeAnswers(encodeAnswers(sent))).toEqual(sent);
      }),
      { seed: 11, numRuns: 300 },
    );
  });
});

describe('a malformed payload', () => {
  const batch = entryOf([{ userId: 'ada' }, { userId: 'bob' }]);
  const columns = [[1, 2], [900, 900], [4, 5], [0, 3], batch];
  const answerRow = [1, 0, true, 'default', 1, 1, 1, 1, 1, 1, 1, 1];
  const wrong = [undefined, true, 'x', -1, 0.5, [], {}, 2 ** 53];

  it('of requests is a FrameError', () => {
    expect(decodeRequests(pack(columns))).toHaveLength(2);
    for (let at = 0; at < columns.length; at += 1) {
      for (const value of [...wrong, [1], [1, 'x'], [1, 2, 3], batch.subarray(1)]) {
        if (at === 3 && value === undefined) continue;
        expect(() => decodeRequests(pack(columns.with(at, value as never)))).toThrow(FrameError);
      }
      expect(() => decodeRequests(pack(columns.toSpliced(at, 1)))).toThrow(FrameError);
    }
    const sweep = encodeSweep();
    expect(() => decodeRequests(pack(columns.with(4, sweep)))).toThrow(FrameError);
  });

  it('of answers is a FrameError', () => {
    for (let at = 0; at < answerRow.length; at += 1) {
      for (const value of wrong) {
        if ((at === 2 && value === true) || (at === 3 && value === 'x')) continue;
        expect(() => decodeAnswers(pack([answerRow.with(at, value as never)]))).toThrow(FrameError);
      }
      expect(() => decodeAnswers(pack([answerRow.slice(0, at)]))).toThrow(FrameError);
    }
  });

  it('of any bytes is a FrameError or harmless', () => {
    const row = fc.array(fc.oneof(fc.anything({ maxDepth: 2 }), natural));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.array(row).map(pack)), (payload) => {
        for (const decode of [decodeRequests, decodeAnswers]) {
          let error: unknown;
          try {
            decode(payload);
          } catch (thrown) {
            error = thrown;
          }
          expect(error === undefined || error instanceof FrameError).toBe(true);
        }
      }),
      { seed: 12, numRuns: 1_000 },
    );
  });
});
