/** Tests the names of windows, and which names are allowed. */
import { describe, expect, it } from 'vitest';
import { limiterRulesOf } from '../../src/rules/limiter-rules.ts';
import { nativeForm } from '../../src/rules/native-form.ts';
import { rulesOf, reported } from './read.ts';

function document(windows: string, more = ''): string {
  return `rules: [{id: per-user, key: user, windows: ${windows}${more}}]`;
}

function idsOf(text: string): string[] {
  return limiterRulesOf(rulesOf(text)).map(({ id }) => id);
}

describe('a window', () => {
  it('is named after its rule and its period, also if it is the only one', () => {
    expect(idsOf(document('{limit: 1, per: minute}'))).toEqual(['per-user/minute']);
    const all = ['second', 'minute', 'hour', 'day', 'week', 'month'].map((per) => `{limit: 1, per: ${per}}`);
    expect(idsOf(document(`[${all.join()}]`))).toEqual([
      'per-user/second',
      'per-user/minute',
      'per-user/hour',
      'per-user/day',
      'per-user/week',
      'per-user/month',
    ]);
  });

  it('has the same name for any spelling of its length, which is the name if it is no unit', () => {
    expect(idsOf(document('[{limit: 1, windowMillis: 90000}, {limit: 1, windowMillis: 60000}]'))).toEqual([
      'per-user/minute',
      'per-user/90000ms',
    ]);
  });

  it('is the same at any place in the list', () => {
    const [minute, day, peak] = [
      '{limit: 1, per: minute}',
      '{limit: 2, per: day}',
      '{limit: 3, per: day, name: peak}',
    ];
    const expected = rulesOf(document(`[${minute}, ${day}, ${peak}]`));
    expect(rulesOf(document(`[${peak}, ${day}, ${minute}]`))).toEqual(expected);
    expect(limiterRulesOf(expected)).toMatchObject([
      { id: 'per-user/minute', of: 'per-user', limit: 1 },
      { id: 'per-user/day', of: 'per-user', limit: 2 },
      { id: 'per-user/peak', of: 'per-user', limit: 3, windowMillis: 86_400_000 },
    ]);
  });

  it('may be named by its own period, which changes nothing', () => {
    const rules = rulesOf(document('{limit: 1, per: day, name: day}'));
    expect(rules).toEqual(rulesOf(document('{limit: 1, per: day}')));
  });

  it('keeps its name when a rule is written and read again', () => {
    const rules = rulesOf(document('[{limit: 1, per: day}, {limit: 2, per: day, name: peak}]'));
    expect(rulesOf(JSON.stringify({ rules: rules.map(nativeForm) }))).toEqual(rules);
  });

  it('has the burst of its rule if none is shorter', () => {
    const windows = '[{limit: 9, per: day}, {limit: 1, per: minute}, {limit: 2, per: minute, name: peak}]';
    const limits = limiterRulesOf(rulesOf(document(windows, ', meter: tokenBucket, burst: 5')));
    expect(limits.map(({ id, burst }) => [id, burst])).toEqual([
      ['per-user/minute', 5],
      ['per-user/peak', 5],
      ['per-user/day', undefined],
    ]);
  });
});

describe('mistakes in names of windows', () => {
  it.each([
    [
      '[{limit: 1, per: day}, {limit: 2, windowMillis: 86400000}]',
      '1:67 there is a window per day already; two windows of one period need a name, such as name: peak',
    ],
    [
      '[{limit: 1, per: day, name: peak}, {limit: 2, per: hour, name: peak}]',
      "1:79 name 'peak' is used by another window of the rule; each needs its own",
    ],
    ['{limit: 1, per: day, name: a/b}', "1:71 name must be without a /, but is 'a/b'"],
    [
      '{limit: 1, per: day, name: minute}',
      "1:71 name 'minute' is a period, and the window is per day; choose another name",
    ],
    [
      '{limit: 1, per: minute, name: 60000ms}',
      "1:74 name '60000ms' is a period, and the window is per minute; choose another name",
    ],
    [
      `{limit: 1, per: day, name: ${'x'.repeat(32)}}`,
      `1:71 name must be text of 1 to 31 bytes in Unicode, but is '${'x'.repeat(32)}'`,
    ],
  ])('%s', (windows, mistake) => {
    expect(reported(document(windows))).toEqual([mistake]);
  });

  it('are reported for an id of the form of a stated limit', () => {
    const text = 'rules: [{id: 100, key: user, windows: {limit: 1, windowMillis: 90000}}]';
    expect(reported(text)).toEqual([
      "1:39 '100/90000ms' has the form of a limit that a request states itself; choose another id",
    ]);
    expect(idsOf('rules: [{id: 100, key: user, windows: {limit: 1, per: minute}}]')).toEqual(['100/minute']);
  });
});
