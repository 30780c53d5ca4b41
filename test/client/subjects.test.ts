/** Tests that requests have the same cache key exactly if the same limits decide them. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PermitRequest, subjectOf } from '../../src/client/permit.ts';

const unit = fc.constantFrom(
  'user',
  'a',
  '"',
  ',',
  ':',
  '[',
  ']',
  '\\',
  '\u0000',
  '|',
  '=',
  '/',
  'null',
  'é',
);
const text = fc.string({ unit, maxLength: 4 });
const named = fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name, maxLength: 4 });
const request: fc.Arbitrary<PermitRequest> = fc.oneof(
  fc.record({ userId: text, rule: fc.option(text, { nil: undefined }) }),
  fc.record({
    userId: fc.option(text, { nil: undefined }),
    rule: fc.option(text, { nil: undefined }),
    descriptors: named.map(Object.fromEntries),
  }),
);

/** The request without its cost, in a fixed order. */
function plain({ userId, rule, descriptors }: PermitRequest): unknown {
  const entries = new Map(Object.entries(descriptors ?? {}));
  if (userId !== undefined) entries.set('user', userId);
  return { rule, entries };
}

function long(last: string): PermitRequest {
  const values = Array.from({ length: 16 }, (_, i) => [`d${i}`, 'x'.repeat(1_000) + last]);
  return { descriptors: Object.fromEntries(values) };
}

describe('a subject', () => {
  it('is the same for the same descriptors in another order, and at another cost', () => {
    fc.assert(
      fc.property(named, fc.integer(), (entries, cost) => {
        const one = subjectOf({ descriptors: Object.fromEntries(entries) });
        expect(subjectOf({ descriptors: Object.fromEntries(entries.toReversed()), cost })).toBe(one);
      }),
    );
  });

  it('is the same for both forms of a user', () => {
    fc.assert(
      fc.property(text, fc.option(text, { nil: undefined }), named, (userId, rule, entries) => {
        const descriptors = Object.fromEntries(entries);
        const one = subjectOf({ descriptors: { ...descriptors, user: userId }, rule });
        expect(subjectOf({ userId, descriptors, rule })).toBe(one);
      }),
    );
    expect(subjectOf({ userId: 'ada' })).toBe(subjectOf({ descriptors: { user: 'ada' } }));
  });

  it('is different for different requests, for all texts', () => {
    fc.assert(
      fc.property(request, request, (a, b) => {
        const isSame = isDeepStrictEqual(plain(a), plain(b));
        expect(subjectOf(a) === subjectOf(b)).toBe(isSame);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of long descriptors is short, and different for different ones', () => {
    expect(subjectOf(long('a')).length).toBeLessThan(100);
    expect(subjectOf(long('a'))).toBe(subjectOf(long('a')));
    expect(subjectOf(long('a'))).not.toBe(subjectOf(long('b')));
  });
});
