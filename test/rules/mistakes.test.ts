/** Tests the mistakes that are reported: line and column, message and suggestion. */
import { describe, expect, it } from 'vitest';
import { nearest } from '../../src/rules/mistakes.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { reported } from './read.ts';

const RULE = '{id: a, windows: {limit: 1, per: day}}';

describe('mistakes in rules', () => {
  it('are all reported, in order', () => {
    expect(
      reported(`rules:
  - id: 100/60000ms
    mtach: {user: a}
    key: [user, ip/0, user, 'a b']
    windows: []
    meter: sliding_log
    cost: 0
  - windows: [{limit: -1, per: fortnight}, {per: day}, 5]
    burst: 10
    clock: wall
    enabled: yes
  - id: c
    match: {endpoint: '/*/x', 'no name': 1, user: [a]}
    unlimited: true
    windows: {limit: 1, per: day, windowMillis: 5}
    burst: 3
    priority: 1.5
    replaces: [b, c]
    comment:
  - just text
`),
    ).toEqual([
      "2:9 '100/60000ms' has the form of a limit that a request states itself; choose another id",
      "3:5 unknown field 'mtach'; did you mean match?",
      "4:17 an address is counted by ip/1 to ip/128, or ip/24/64 for both kinds, but is 'ip/0'",
      "4:23 key has 'user' twice",
      '4:29 a descriptor has a name of 1 to 64 letters, digits and any of _ . : -, and begins with a letter, ' +
        "but is 'a b'",
      '5:5 windows must have 1 to 8 entries, but has none',
      '6:12 meter must be one of slidingLog, slidingCounter, fixedWindow, tokenBucket, leakyBucket, but is ' +
        "'sliding_log'; did you mean slidingLog?",
      '7:11 cost must be an integer from 1 to 1000000, but is 0',
      '8:5 a rule needs an id',
      '8:23 limit must be an integer from 0 to 1000000, but is -1',
      "8:32 per must be one of second, minute, hour, day, week, month, but is 'fortnight'",
      '8:44 a window needs a limit from 0 to 1000000',
      '8:56 a window must have fields, but is 5',
      '9:5 burst goes with meter: tokenBucket or leakyBucket; a slidingLog never grants more than its limit',
      "10:12 clock must be one of request, cluster, but is 'wall'",
      "11:14 enabled must be true or false, but is 'yes'",
      "13:23 endpoint may have one * and at its end only, but is '/*/x'",
      '13:31 a descriptor has a name of 1 to 64 letters, digits and any of _ . : -, and begins with a letter, ' +
        "but is 'no name'",
      '13:51 user must be text of 1 to 256 bytes, but is a list of 1',
      '15:5 a rule has windows, or is unlimited, but not both',
      '15:35 a window has per, or windowMillis, but not both',
      '16:5 an unlimited rule has no burst',
      '17:15 priority must be an integer from -1000000 to 1000000, but is 1.5',
      "18:16 no rule is called 'b'; did you mean c?",
      '18:19 a rule cannot replace itself',
      '19:13 comment must be text of 1 to 1024 bytes, but is nothing',
      "20:5 a rule must have fields, but is 'just text'",
    ]);
  });

  it('are reported between rules', () => {
    const text = `rules:
- {id: ab, windows: {limit: 1, per: day}, replaces: abc}
- {id: abc, windows: [{limit: 1, per: day}, {limit: 2, windowMillis: 86400000}], replaces: [abcd]}
- {id: abcd, windows: {limit: 1, per: day}, replaces: ab}
- {id: ab, windows: {limit: 1, per: day}, replaces: abe}
`;
    expect(reported(text)).toEqual([
      '3:45 there is a window per day already; two windows of one period need a name, such as name: peak',
      "4:55 rules replace each other in a circle, back to 'ab'",
      "5:8 another rule has the id 'ab'; see line 2",
      "5:53 no rule is called 'abe'; did you mean ab?",
    ]);
  });

  it('are reported with the known fields, and those of the document', () => {
    expect(reported(`rule: [${RULE}]`)).toEqual(["1:1 unknown field 'rule'; did you mean rules?"]);
    expect(reported(`zones: [${RULE}]`)).toEqual([
      "1:1 unknown field 'zones'; known here are rules, rate_limits, default, tiers, endpoints, customers, unmatched, shadow",
    ]);
    expect(reported('rules: {a: 1}')).toEqual(['1:8 rules must be a list of rules, but is a map of fields']);
    expect(reported('- a')).toEqual(['1:1 the document must have fields, but is a list of 1']);
  });

  it('are at most one hundred', () => {
    const read = readRules(`rules: [${Array.from({ length: 150 }, () => '{id: a, windows: x}').join()}]`);
    if (read.kind !== 'mistakes') throw new Error('no mistakes');
    expect(read.mistakes).toHaveLength(100);
    expect(read.isComplete).toBe(false);
  });

  it('are reported in one printable line, for any bytes in the document', () => {
    expect(reported('"a\\nb\\e[2J\\u202e": 1')).toEqual([
      "1:1 unknown field 'a?b?[2J?'; known here are rules, rate_limits, default, tiers, endpoints, customers, unmatched, shadow",
    ]);
  });
});

describe('mistakes in YAML', () => {
  it.each([
    ['', ['1:1 the document is empty']],
    ['# nothing\n---\n', ['1:1 the document is empty']],
    [
      'rules: [\n  {id: a},\n',
      ['3:1 not YAML: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    ['rules:\n  - id: a\n  id: b\n', ['3:1 not YAML: All mapping items must start at the same column']],
    ['rules: []\nrules: []\n', ["2:1 'rules' appears here twice; first in line 1"]],
    ['rules: []\n---\nrules: []\n', ['2:1 a second document begins here; a file holds one']],
    [
      '%YAML 1.1\n---\nrules: []\n',
      ['1:1 a directive (a line that begins with %) is not supported; leave it out'],
    ],
    [
      'rules: *all',
      [
        '1:8 no anchor &all is defined before this alias',
        '1:8 rules must be a list of rules, but is nothing',
      ],
    ],
    ['rules: !!binary aGk=', ['1:17 the tag !!binary is not supported; leave it out']],
    ['rules: !own []', ['1:8 not YAML: Unresolved tag: !own']],
    ['? [a]\n: 1', ['1:3 the name of a field must be text']],
  ])('%j', (text, mistakes) => {
    expect(reported(text).slice(0, mistakes.length)).toEqual(mistakes);
  });

  it('include invalid UTF-8, at the first wrong byte', () => {
    const bytes = new TextEncoder().encode('rules: []\n# \uFFFD né ');
    expect(reported(bytes)).toEqual([]);
    expect(reported(Uint8Array.from([...bytes, 0xff, 0x41]))).toEqual([
      '2:8 the document is not valid UTF-8',
    ]);
    expect(reported(Uint8Array.of(0xc3))).toEqual(['1:1 the document is not valid UTF-8']);
  });
});

function listed(count: number, item: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => item(i)).join();
}

function manyRules(count: number): string {
  const rules = Array.from({ length: count }, (_, i) => `- {id: r${i}, unlimited: true}`);
  return `rules:\n${rules.join('\n')}`;
}

function manyEnds(count: number): string {
  return `domain: d\ndescriptors: [{key: a, descriptors: [${listed(count, (i) => `{key: k${i}}`)}]}, {key: z}]`;
}

describe('bounds', () => {
  it('of size: a mebibyte, ten thousand rules', () => {
    expect(reported(' '.repeat(2 ** 20 + 1))).toEqual([
      '1:1 a document may have at most 1048576 bytes, but has 1048577',
    ]);
    expect(reported(manyRules(10_000))).toEqual([]);
    expect(reported(manyRules(10_001))).toEqual([
      '10002:3 rules may have at most 10000 entries, but has 10001',
    ]);
    expect(reported(manyEnds(9_999))).toEqual([]);
    expect(reported(manyEnds(10_000))).toMatchObject([
      expect.stringContaining('at most 10000 rules, but has 10001'),
    ]);
  });

  it('of depth, and of the values that aliases repeat', () => {
    const deep = `rules: ${'['.repeat(65)}${']'.repeat(65)}`;
    expect(reported(deep)).toMatchObject([expect.stringContaining('may be nested at most 64 deep')]);
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
    expect(reported(`l0: &l0 [x]\n${levels.join('\n')}`)).toMatchObject([
      expect.stringContaining('at most 300000 values, counting those that aliases repeat'),
    ]);
    expect(reported('rules: &a [*a, *a]')).toMatchObject([expect.stringContaining('more than 64 deep')]);
  });

  it('of nested descriptors, windows, conditions and parts of a key', () => {
    const nested = (depth: number): string =>
      depth === 0 ? '[]' : `[{key: k, descriptors: ${nested(depth - 1)}}]`;
    expect(reported(`domain: d\ndescriptors: ${nested(16)}`)).toEqual([]);
    expect(reported(`domain: d\ndescriptors: ${nested(17)}`)).toMatchObject([
      expect.stringContaining('at most 16 deep'),
    ]);
    const windows = listed(9, (i) => `{limit: 1, windowMillis: ${i + 1}}`);
    const match = listed(17, (i) => `d${i}: x`);
    const key = listed(9, (i) => `d${i}`);
    expect(
      reported(`rules:\n- id: a\n  match: {${match}}\n  key: [${key}]\n  windows: [${windows}]`),
    ).toEqual([
      '3:113 match may have at most 16 entries, but has 17',
      '4:33 key may have at most 8 entries, but has 9',
      '5:237 windows may have at most 8 entries, but has 9',
    ]);
  });
});

it('the suggested name is the one that differs by the fewest letters', () => {
  expect(nearest('widnows', ['match', 'windows'])).toBe('windows');
  expect(nearest('fail_mode', ['failMode', 'fail'])).toBe('failMode');
  expect(nearest('x', ['match', 'windows'])).toBeUndefined();
  expect(nearest('x'.repeat(50), ['x'.repeat(50)])).toBeUndefined();
});
