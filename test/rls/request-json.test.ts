/** Requests and responses of Envoy's rate limit protocol in JSON. */
import { describe, expect, it } from 'vitest';
import { InvalidFieldError } from '../../src/api/fields.ts';
import type { ListOutcome } from '../../src/api/listed.ts';
import { askedBy } from '../../src/rls/request.ts';
import { requestOfJson } from '../../src/rls/request-json.ts';
import { jsonOf, responseTo } from '../../src/rls/response.ts';
import { RLS_SETTINGS_DEFAULTS, validateRlsSettings } from '../../src/rls/rls-settings.ts';

const ENTRIES = [{ key: 'k', value: 'v' }];

/** The field that the error names. */
function fieldRefused(value: unknown): string | undefined {
  try {
    requestOfJson(value);
    return undefined;
  } catch (error) {
    return error instanceof InvalidFieldError ? error.field : String(error);
  }
}

describe('a request in JSON', () => {
  it('has names in either spelling, whole numbers as texts, and null as absent', () => {
    const descriptors = [
      { entries: ENTRIES, hits_addend: '0' },
      { entries: ENTRIES, limit: { requests_per_unit: 3, unit: 'MINUTE' } },
      { entries: ENTRIES, limit: { requestsPerUnit: '4', unit: 3 }, hitsAddend: 2 },
      { entries: ENTRIES, limit: null, hitsAddend: null },
    ];
    expect(askedBy(requestOfJson({ domain: 'd', descriptors, hitsAddend: 5 }))).toEqual({
      domain: 'd',
      lists: [
        { entries: ENTRIES, cost: 0 },
        { entries: ENTRIES, cost: 5, limit: { limit: 3, windowMillis: 60_000 } },
        { entries: ENTRIES, cost: 2, limit: { limit: 4, windowMillis: 3_600_000 } },
        { entries: ENTRIES, cost: 5 },
      ],
    });
  });

  it('costs 1 if it names no cost', () => {
    for (const hits of [{}, { hitsAddend: 0 }])
      expect(
        askedBy(requestOfJson({ domain: 'd', descriptors: [{ entries: ENTRIES }], ...hits })),
      ).toMatchObject({
        lists: [{ cost: 1 }],
      });
  });

  it('has a cost above any limit, if its cost is above the maximum', () => {
    const descriptors = [{ entries: ENTRIES, hitsAddend: '18446744073709551615' }, { entries: ENTRIES }];
    expect(askedBy(requestOfJson({ domain: 'd', descriptors, hitsAddend: 4_294_967_295 }))).toMatchObject({
      lists: [{ cost: 1_000_001 }, { cost: 1_000_001 }],
    });
  });

  it.each<[string, unknown]>([
    ['request', []],
    ['request.domian', { domian: 'd' }],
    ['domain', { domain: 1 }],
    ['descriptors', { descriptors: {} }],
    ['descriptors', { descriptors: Array.from({ length: 51 }, () => ({ entries: ENTRIES })) }],
    ['descriptors[0].entries[0].key', { descriptors: [{ entries: [{ key: 1 }] }] }],
    ['hits_addend', { hitsAddend: -1 }],
    ['hits_addend', { hitsAddend: 1.5 }],
    ['request.hits_addend', { hitsAddend: 1, hits_addend: 1 }],
    ['descriptors[0].is_negative_hits', { descriptors: [{ isNegativeHits: 'yes' }] }],
  ])('is refused by naming %s: %j', (field, value) => {
    expect(fieldRefused(value)).toBe(field);
  });

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['domain', { domain: '' }],
    ['descriptors', { descriptors: [] }],
    ['descriptors[0].entries', { descriptors: [{ entries: [] }] }],
    ['descriptors[0].entries[0].key', { descriptors: [{ entries: [{ key: '', value: 'v' }] }] }],
    ['descriptors[0].is_negative_hits', { descriptors: [{ entries: ENTRIES, isNegativeHits: true }] }],
    [
      'descriptors[0].limit.unit',
      { descriptors: [{ entries: ENTRIES, limit: { requestsPerUnit: 1, unit: 'YEAR' } }] },
    ],
    [
      'descriptors[0].limit.unit',
      { descriptors: [{ entries: ENTRIES, limit: { requestsPerUnit: 1, unit: 'WEEK' } }] },
    ],
    ['descriptors[0].limit.unit', { descriptors: [{ entries: ENTRIES, limit: { requestsPerUnit: 1 } }] }],
    [
      'descriptors[0].limit.requests_per_unit',
      { descriptors: [{ entries: ENTRIES, limit: { requestsPerUnit: 1_000_001, unit: 'DAY' } }] },
    ],
  ])('is refused beyond the bounds of %s', (field, changes) => {
    const request = requestOfJson({ domain: 'd', descriptors: [{ entries: ENTRIES }], ...changes });
    expect(askedBy(request)).toMatchObject({ kind: 'invalid', field });
  });
});

const STATUS = {
  ruleId: 'r',
  limit: 10,
  windowMillis: 60_000,
  remaining: 4,
  retryAfterMillis: 0,
  resetMillis: 58_000,
};

describe('an answer in JSON', () => {
  it('contains no time under a limit of 0, because no wait helps', () => {
    const never = { ...STATUS, limit: 0, remaining: 0, resetMillis: 0, retryAfterMillis: 60_000 };
    const lists: ListOutcome[] = [{ kind: 'limited', isOver: true, name: 'never', limitStatus: never }];
    const response = responseTo({ kind: 'listed', allowed: false, lists }, true);
    expect(response.responseHeadersToAdd.map(({ key }) => key)).toEqual([
      'RateLimit-Limit',
      'RateLimit-Remaining',
    ]);
    expect(jsonOf(response)).toMatchObject({
      statuses: [{ code: 'OVER_LIMIT', currentLimit: { unit: 'MINUTE', name: 'never' } }],
    });
    expect(JSON.stringify(jsonOf(response))).not.toContain('durationUntilReset');
  });

  it('has the header for a denial after a restore, beside any other headers', () => {
    const lists: ListOutcome[] = [
      { kind: 'limited', isOver: true, name: 'a', limitStatus: { ...STATUS, restoredMillis: 4_500 } },
      { kind: 'limited', isOver: false, name: 'b', limitStatus: STATUS },
    ];
    expect(responseTo({ kind: 'listed', allowed: false, lists }, false).responseHeadersToAdd).toEqual([
      { key: 'quorate-restored', value: '5' },
    ]);
  });

  it('omits zeros, and names units', () => {
    const full = { ...STATUS, windowMillis: 2_592_000_000, remaining: 0, retryAfterMillis: 1_250 };
    const lists: ListOutcome[] = [
      { kind: 'limited', isOver: false, name: 'a', limitStatus: STATUS },
      { kind: 'limited', isOver: true, name: '', limitStatus: full },
      { kind: 'limited', isOver: false, name: '' },
      { kind: 'free' },
      { kind: 'unlimited' },
    ];
    expect(jsonOf(responseTo({ kind: 'listed', allowed: false, lists }, true))).toEqual({
      overallCode: 'OVER_LIMIT',
      statuses: [
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 10, unit: 'MINUTE', name: 'a' },
          limitRemaining: 4,
          durationUntilReset: '58s',
        },
        {
          code: 'OVER_LIMIT',
          currentLimit: { requestsPerUnit: 10, unit: 'MONTH' },
          durationUntilReset: '1.250s',
        },
        { code: 'OK' },
        { code: 'OK' },
        { code: 'OK', limitRemaining: 4_294_967_295 },
      ],
      responseHeadersToAdd: [
        { key: 'RateLimit-Limit', value: '10' },
        { key: 'RateLimit-Remaining', value: '0' },
        { key: 'RateLimit-Reset', value: '2' },
      ],
    });
  });

  it('has no headers by default, or if no rule has a limit', () => {
    const limited: ListOutcome = { kind: 'limited', isOver: false, name: '', limitStatus: STATUS };
    expect(
      responseTo({ kind: 'listed', allowed: true, lists: [limited] }, false).responseHeadersToAdd,
    ).toEqual([]);
    expect(
      responseTo({ kind: 'listed', allowed: true, lists: [{ kind: 'free' }] }, true).responseHeadersToAdd,
    ).toEqual([]);
  });
});

describe('the settings', () => {
  it('are checked', () => {
    expect(validateRlsSettings({}, 'rls')).toEqual(RLS_SETTINGS_DEFAULTS);
    expect(validateRlsSettings({ responseHeaders: true }, 'rls')).toEqual({ responseHeaders: true });
    expect(() => validateRlsSettings({ responseHeaders: 1 }, 'rls')).toThrow('rls.responseHeaders must be');
    expect(() => validateRlsSettings({ headers: true }, 'rls')).toThrow('rls.headers is not known');
  });

  it('contains the remaining time of a block, if that has an end', () => {
    const list = { kind: 'limited', isOver: true, name: '' } as const;
    const response = responseTo(
      { kind: 'listed', allowed: false, lists: [list, { ...list, blockedMillis: 1_500 }] },
      true,
    );
    expect(response.statuses).toEqual([
      { code: 'OVER_LIMIT', limitRemaining: 0 },
      { code: 'OVER_LIMIT', limitRemaining: 0, untilResetMillis: 1_500 },
    ]);
  });
});
