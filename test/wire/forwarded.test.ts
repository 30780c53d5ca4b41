/** Requests on their way to a leader and answers on their way back: all of it arrives, and nothing else is believed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FINGERPRINT_FIELDS } from '../../src/limiter/fingerprint.ts';
import { type Answer, UNAVAILABLE_REASONS } from '../../src/partition/answer.ts';
import { decodeAnswers, encodeAnswers, type ForwardedAnswer } from '../../src/wire/answers.ts';
import { pack } from '../../src/wire/fields.ts';
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
    field: fc.constantFrom(...FINGERPRINT_FIELDS),
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
    partition: natural,
    relayTo: natural,
    request: fc.record(
      {
        userId: fc.string({ unit: 'grapheme' }),
        ruleId: fc.string({ unit: 'grapheme' }),
        cost: natural,
        timestampMillis: natural,
        requestId: fc.string(),
      },
      { requiredKeys: ['userId'] },
    ),
  }),
  { maxLength: 5 },
);

describe('requests', () => {
  it('arrive with every field', () => {
    fc.assert(
      fc.property(requests, (sent) => {
        expect(decodeRequests(encodeRequests(sent))).toEqual(sent);
      }),
      { seed: 11, numRuns: 300 },
    );
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
  const requestRow = [1, 1_000, 4, 0, 'ada', null, null, null, null];
  const answerRow = [1, 0, true, 'default', 1, 1, 1, 1, 1, 1, 1, 1];
  const wrong = [undefined, true, 'x', -1, 0.5, [], {}, 2 ** 53];

  it('of requests is a FrameError', () => {
    for (let at = 0; at < requestRow.length; at += 1) {
      for (const value of wrong) {
        const isText = at === 4 || at === 5 || at === 8;
        const isOptional = at > 4;
        if ((isText && value === 'x') || (isOptional && value === undefined)) continue;
        expect(() => decodeRequests(pack([requestRow.with(at, value as never)]))).toThrow(FrameError);
      }
      expect(() => decodeRequests(pack([requestRow.slice(0, at)]))).toThrow(FrameError);
    }
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
