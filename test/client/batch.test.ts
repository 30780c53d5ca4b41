/** Tests how a client reads the response to a batch: only an answer in a known form is certain. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heardOf } from '../../src/client/batch.ts';
import { nextStep } from '../../src/client/next-step.ts';
import { denialOf, grantOf, unavailableOf } from './played.ts';

const ERROR = { type: 'x', message: 'why' };
const INDEFINITE = { code: 'INDEFINITE', isDefinite: false };

/** The result of a request without an id whose only attempt got this answer. */
function reportOf(status: number, body: unknown): unknown {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const [heard] = heardOf({ kind: 'response', status, body: text }, 1);
  if (heard === undefined) throw new Error('there is no outcome of the request');
  const asked = { isRepeatable: false, mayHaveCounted: false, attempts: 1, leftMillis: 0 };
  const step = nextStep(heard, asked, 0);
  return step.kind === 'error' ? step.error : step;
}

describe('a response that no node sends', () => {
  it.each([
    ['truncated', 200, JSON.stringify({ answers: [grantOf()] }).slice(0, -1)],
    ['empty', 204, ''],
    ['one answer too many', 200, { answers: [grantOf(), grantOf()] }],
    ['answers that are not a list', 200, { answers: { 0: grantOf(), length: 1 } }],
    ['a refusal of status 200', 200, { allowed: false, error: ERROR }],
    ['without a field that says whether it was proposed', 503, { allowed: false, reason: 'deadline' }],
    ['proposed as text', 503, { allowed: false, reason: 'deadline', proposed: 'false' }],
    ['a reason that is no text', 503, { allowed: false, reason: 5, proposed: false, error: ERROR }],
    ['503 without a reason', 503, { allowed: false }],
    ['a refusal without its reason', 403, { allowed: false }],
    ['a reason without a message', 403, { allowed: false, error: { type: 'x', message: 7 } }],
    ['a proxy that cannot reach a node', 502, { allowed: false, error: ERROR }],
    ['a proxy that timed out', 504, { allowed: false, error: ERROR }],
    ['a redirection', 307, { allowed: false, error: ERROR }],
    ['a failure', 500, { allowed: false, error: ERROR }],
    ['accepted', 202, { allowed: false, error: ERROR }],
  ])(
    '(%s) may come from a proxy that forwarded the request, so the outcome is unknown',
    (_, status, body) => {
      expect(reportOf(status, body)).toMatchObject(INDEFINITE);
    },
  );

  it.each([
    ['a limit as text', grantOf({ limit: '100' })],
    ['a negative remainder', grantOf({ remaining: -1 })],
    ['no version of rules', grantOf({ rulesVersion: undefined })],
    [
      'a receipt with an index that is no integer',
      grantOf({ decided: { partition: 0, term: 1, index: 1.5, timeMillis: 1 } }),
    ],
    ['a denial without a wait', denialOf({ retryAfterMillis: undefined })],
    ['a denial with a wait as text', denialOf({ retryAfterMillis: '5' })],
    ['a denial that is allowed', denialOf({ allowed: true })],
    ['a denial without a receipt', denialOf({ decided: null })],
    ['a block without a receipt', denialOf({ status: 403, decided: undefined })],
    ['no field that says whether it was proposed', { status: 503, allowed: false, reason: 'no_leader' }],
    ['an error without a field', { status: 400, allowed: false, error: { message: 'm' } }],
    ['an unknown status', denialOf({ status: 418 })],
    ['a list', [grantOf()]],
  ])('of one request (%s) is neither a grant nor a denial', (_, answer) => {
    expect(reportOf(200, { answers: [answer] })).toMatchObject(INDEFINITE);
  });

  it.each([
    [401, { allowed: false, error: ERROR }, 'REFUSED'],
    [408, { allowed: false, error: ERROR }, 'UNAVAILABLE'],
    [503, { allowed: false, error: { type: 'starting', message: 'm' } }, 'UNAVAILABLE'],
    [503, unavailableOf('draining', false), 'UNAVAILABLE'],
    [503, unavailableOf('deadline', true), 'INDEFINITE'],
  ])('of status %i and %j leaves the outcome unknown only if the node says so', (status, body, code) => {
    expect(reportOf(status, body)).toMatchObject({ code, isDefinite: code !== 'INDEFINITE' });
  });

  it('never throws, for any body', () => {
    const error = fc.oneof(
      fc.jsonValue(),
      fc.record({ type: fc.jsonValue(), message: fc.jsonValue(), field: fc.jsonValue() }),
      fc.constant({ ...ERROR, field: { toString: 1, valueOf: 1 } }),
    );
    const body = fc.record({ allowed: fc.boolean(), reason: fc.jsonValue(), error, answers: fc.jsonValue() });
    const status = fc.constantFrom(200, 400, 401, 403, 408, 422, 429, 500, 503);
    fc.assert(
      fc.property(status, fc.oneof(body, fc.jsonValue()), (code, value) => {
        const heard = heardOf({ kind: 'response', status: code, body: JSON.stringify(value) }, 3);
        expect(heard).toHaveLength(3);
        expect(heard.some(({ kind }) => kind === 'answer')).toBe(false);
      }),
    );
  });
});

describe('a certain outcome of an attempt', () => {
  it.each([
    { kind: 'invalid', field: 'rule', message: 'no such rule' },
    { kind: 'conflict', field: 'cost', message: 'of another' },
    { kind: 'refused', status: 401, message: 'no token' },
    { kind: 'unavailable', reason: 'no_leader', isProposed: false },
    { kind: 'silent', isSent: false, error: new Error('ECONNREFUSED') },
  ] as const)('says nothing about the attempt before it: %j', (heard) => {
    const asked = { isRepeatable: true, mayHaveCounted: true, attempts: 2, leftMillis: 0 };
    expect(nextStep(heard, asked, 0)).toMatchObject({ kind: 'error', error: INDEFINITE });
    expect(nextStep(heard, { ...asked, mayHaveCounted: false }, 0)).toMatchObject({
      error: { isDefinite: true },
    });
  });
});
