/** The check of requests: every field at both of its bounds, and its name in the error. */
import { describe, expect, it } from 'vitest';
import { invalidInUser, type UserQuestion } from '../../src/api/question.ts';
import { REQUEST_FIELDS } from '../../src/api/request.ts';

const TEXT_256 = 'text of 1 to 256 bytes';
const TEXT_128 = 'text of 1 to 128 bytes';
const COST = 'an integer from 1 to 1000000';
const TIME = 'an integer from 0 to 8640000000000000';

describe('a well-formed request', () => {
  it.each<UserQuestion>([
    { userId: 'u' },
    { userId: 'ü'.repeat(128) },
    { userId: 'u', rule: 'r'.repeat(128), cost: 1_000_000, timestampMillis: 0, requestId: 'q'.repeat(128) },
    { userId: 'u', cost: 1, timestampMillis: 8_640_000_000_000_000 },
    { userId: 'u', rule: undefined, cost: undefined, timestampMillis: undefined, requestId: undefined },
  ])('is accepted: %j', (request) => {
    expect(invalidInUser(request)).toBeUndefined();
  });
});

describe('a request is refused with the API name of the field and its bound', () => {
  it.each<[(typeof REQUEST_FIELDS)[number], UserQuestion, string]>([
    ['userId', { userId: '' }, TEXT_256],
    ['userId', { userId: 'x'.repeat(257) }, TEXT_256],
    ['userId', { userId: 'ü'.repeat(129) }, TEXT_256],
    ['userId', { userId: '\udc00' }, TEXT_256],
    ['userId', { userId: '\ufeffu' }, TEXT_256],
    ['rule', { userId: 'u', rule: '' }, TEXT_128],
    ['rule', { userId: 'u', rule: 'x'.repeat(129) }, TEXT_128],
    ['cost', { userId: 'u', cost: 0 }, COST],
    ['cost', { userId: 'u', cost: 1.5 }, COST],
    ['cost', { userId: 'u', cost: 1_000_001 }, COST],
    ['timestampMillis', { userId: 'u', timestampMillis: -1 }, TIME],
    ['timestampMillis', { userId: 'u', timestampMillis: 8_640_000_000_000_001 }, TIME],
    ['requestId', { userId: 'u', requestId: '' }, TEXT_128],
    ['requestId', { userId: 'u', requestId: 'x'.repeat(129) }, TEXT_128],
  ])('%s: %j', (field, request, bound) => {
    expect(invalidInUser(request)).toEqual({ kind: 'invalid', field, message: `${field} must be ${bound}` });
  });

  it('cost of any other type', () => {
    for (const value of [null, 7, true, [], {}, 'x']) {
      const request = { userId: 'u', cost: value } as unknown as UserQuestion;
      expect(invalidInUser(request)?.field).toBe(value === 7 ? undefined : 'cost');
    }
  });
});
