/** 004-09: tests that documents for envoyproxy/ratelimit are read unchanged, with the same meaning. */
import { describe, expect, it } from 'vitest';
import { RuleMatcher } from '../../src/rules/match.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { noted, rulesOf, reported } from './read.ts';

const SHOP = `
domain: shop
descriptors:
  - key: tenant
    value: acme
    rate_limit: {name: acme, unit: MINUTE, requests_per_unit: 100}
    descriptors:
      - key: path
        rate_limit: {unit: second, requests_per_unit: 5}
      - key: path
        value: /health
  - key: tenant
    value: a*
    rate_limit: {unit: hour, requests_per_unit: 50}
  - key: tenant
    value: "*me"
    share_threshold: true
    rate_limit: {unit: hour, requests_per_unit: 51}
  - key: tenant
    rate_limit: {unit: Day, requests_per_unit: 7}
  - key: plan
    value: gold
    rate_limit: {unlimited: true, name: gold, replaces: [{name: acme}]}
  - key: plan
    value: trial
    shadow_mode: true
    rate_limit: {unit: week, requests_per_unit: 0, replaces: [{name: acme}]}
`;

/** A document of one limit. */
function limited(limit: string): string {
  return `domain: d\ndescriptors: [{key: a, rate_limit: {${limit}}}]`;
}

type Entries = readonly (readonly [string, string])[];

/** For each list of descriptors the rule that applies, and its key. */
function applied(text: string, domain: string, ...lists: readonly Entries[]): (string | undefined)[] {
  const asked = lists.map((list) => list.map(([key, value]) => ({ key, value })));
  const matching = new RuleMatcher(rulesOf(text)).matchLists(domain, asked);
  if (matching.kind !== 'rules') throw new Error(`no key for ${matching.rule.id}`);
  return matching.applied.map(([one]) => one && `${one.rule.id} ${one.key}`);
}

describe('a document', () => {
  it('is recognised by its top-level fields, for any name of the file', () => {
    expect(readRules(SHOP)).toMatchObject({ kind: 'rules', format: 'envoy' });
    expect(readRules('domain: d')).toMatchObject({ kind: 'rules', format: 'envoy', definitions: [] });
    expect(reported('descriptors: []')).toEqual(['1:1 the document needs a domain']);
  });

  it('becomes a rule for each limit, and for each leaf without one, in the order of the document', () => {
    expect(rulesOf(SHOP).map(({ id }) => id)).toEqual([
      'shop|tenant=acme',
      'shop|tenant=acme|path',
      'shop|tenant=acme|path=/health',
      'shop|tenant=a*',
      'shop|tenant=*me',
      'shop|tenant',
      'shop|plan=gold',
      'shop|plan=trial',
    ]);
    expect(rulesOf(SHOP)[0]).toEqual({
      id: 'shop|tenant=acme',
      name: 'acme',
      scope: { kind: 'path', domain: 'shop', steps: [{ name: 'tenant', value: 'acme', isCounted: false }] },
      group: 'shop|tenant=acme',
      priority: 0,
      windows: [{ limit: 100, windowMillis: 60_000 }],
      meter: 'slidingLog',
      cost: { otherwise: 1, endpoints: [] },
      clock: 'cluster',
      failMode: 'closed',
      enabled: true,
      shadow: false,
      unlimited: false,
      replaces: [],
    });
  });

  it('gives notes about ignored fields', () => {
    const text = `domain: d
descriptors:
- key: a
  detailed_metric: true
  quota_mode: true
  metadata: {any: [thing]}
  rate_limit: {unit: day}
`;
    expect(noted(text)).toEqual([
      '4:3 detailed_metric is left out: metrics here have no labels for single requests',
      '5:3 quota_mode is left out: the limit always holds by itself, which denies more',
      '6:3 metadata is left out: it is not sent with answers',
      '7:15 without requests_per_unit the limit is 0: all requests are denied',
    ]);
    expect(rulesOf(text)).toMatchObject([{ windows: [{ limit: 0, windowMillis: 86_400_000 }] }]);
  });

  it('may have the form that Envoy Gateway writes: with a name, and all fields, also empty ones', () => {
    const text = `name: default/eg/http
domain: default/eg/http
descriptors:
- key: default/eg/http-0
  value: default/eg/http-0
  rate_limit: null
  descriptors:
  - key: rule-0
    value: ""
    rate_limit:
      requests_per_unit: 5
      unit: HOUR
      unit_multiplier: 0x2
      unlimited: false
      name: ""
      replaces: []
    descriptors: []
    shadow_mode: false
    detailed_metric:
  - {key: rule-1, value: null, rate_limit: {unit: "", unlimited: true}}
  shadow_mode: null
`;
    expect(noted(text)).toEqual([]);
    expect(rulesOf(text)).toMatchObject([
      {
        scope: { steps: [{ name: 'default/eg/http-0' }, { name: 'rule-0', isCounted: true }] },
        name: '',
        windows: [{ limit: 5, windowMillis: 7_200_000 }],
        unlimited: false,
      },
      { scope: { steps: [{}, { name: 'rule-1', isCounted: true }] }, unlimited: true },
    ]);
  });

  it('may be any number that its field allows; above the maximum of a log it is a fixed window', () => {
    const ruleOf = (limit: string): unknown =>
      rulesOf(limited(`requests_per_unit: ${limit}, unit: second`))[0];
    expect(ruleOf('4294967295')).toMatchObject({ windows: [{ limit: 4_294_967_295 }], meter: 'fixedWindow' });
    expect(ruleOf('1000001')).toMatchObject({ windows: [{ limit: 1_000_001 }], meter: 'fixedWindow' });
    expect(ruleOf('1000000')).toMatchObject({ meter: 'slidingLog' });
    expect(reported(limited('requests_per_unit: 4294967296, unit: second'))).toEqual([
      expect.stringContaining('requests_per_unit must be an integer from 0 to 4294967295, but is 4294967296'),
    ]);
  });

  it('has windows of several units, up to the longest', () => {
    const windowOf = (limit: string): number | undefined =>
      rulesOf(limited(`requests_per_unit: 1, ${limit}`))[0]?.windows[0]?.windowMillis;
    expect(windowOf('unit: second, unit_multiplier: 30')).toBe(30_000);
    expect(windowOf('unit: day, unit_multiplier: 31')).toBe(31 * 86_400_000);
    expect(reported(limited('requests_per_unit: 1, unit: day, unit_multiplier: 32'))).toEqual([
      '2:87 unit_multiplier must be an integer from 1 to 31, but is 32',
    ]);
    expect(reported(limited('requests_per_unit: 1, unit: month, unit_multiplier: 0'))).toEqual([
      '2:89 unit_multiplier must be an integer from 1 to 1, but is 0',
    ]);
    expect(reported(limited('unlimited: true, unit_multiplier: 2'))).toEqual([
      '2:54 an unlimited rate_limit has no unit_multiplier',
    ]);
  });

  it('may be post-paid: charged after the fact', () => {
    const [rule] = rulesOf(limited('requests_per_unit: 1, unit: hour, post_paid: true'));
    expect(rule).toMatchObject({ postPaid: true });
    expect(rulesOf(limited('requests_per_unit: 1, unit: hour, post_paid: false'))[0]).not.toHaveProperty(
      'postPaid',
    );
    expect(reported(limited('unlimited: true, post_paid: true'))).toEqual([
      '2:54 an unlimited rate_limit has no post_paid',
    ]);
  });

  it('has distinct ids of bounded length, even for very long values', () => {
    const long = 'x'.repeat(200);
    const text = `domain: d\ndescriptors: [{key: a, value: ${long}1}, {key: a, value: ${long}2}, {key: 'é|=%'}]`;
    const [one, two, three] = rulesOf(text).map(({ id }) => id);
    expect(one).toMatch(/^d\|a=x{75}#[\da-f]{16}$/);
    expect(two).toMatch(/^d\|a=x{75}#[\da-f]{16}$/);
    expect(one).not.toBe(two);
    expect(three).toBe('d|é%7c%3d%25');
    expect(rulesOf(text)[0]?.id).toBe(one);
  });
});

describe('the rule that applies to a request', () => {
  it('is the exact value, then the first pattern of the document, then the key alone', () => {
    expect(applied(SHOP, 'shop', [['tenant', 'acme']])).toEqual(['shop|tenant=acme *']);
    expect(applied(SHOP, 'shop', [['tenant', 'ame']])).toEqual(['shop|tenant=a* tenant=ame']);
    expect(applied(SHOP, 'shop', [['tenant', 'ui']])).toEqual(['shop|tenant tenant=ui']);
  });

  it('counts the values of a pattern separately, or together with share_threshold', () => {
    expect(applied(SHOP, 'shop', [['tenant', 'abc']], [['tenant', 'abd']])).toEqual([
      'shop|tenant=a* tenant=abc',
      'shop|tenant=a* tenant=abd',
    ]);
    expect(applied(SHOP, 'shop', [['tenant', 'some']], [['tenant', 'me']])).toEqual([
      'shop|tenant=*me *',
      'shop|tenant=*me *',
    ]);
  });

  it('is found at its own depth only, without going back to a shorter path', () => {
    const tenant = ['tenant', 'acme'] as const;
    expect(applied(SHOP, 'shop', [tenant, ['path', '/a&b']])).toEqual(['shop|tenant=acme|path path=/a&b']);
    // A leaf without a limit: this path has none.
    expect(applied(SHOP, 'shop', [tenant, ['path', '/health']])).toEqual(['shop|tenant=acme|path=/health *']);
    expect(applied(SHOP, 'shop', [tenant, ['path', '/a'], ['more', '']])).toEqual([undefined]);
    expect(applied(SHOP, 'shop', [['path', '/a'], tenant])).toEqual([undefined]);
    // `a*` has no descriptors below it, and the key alone is not tried.
    expect(
      applied(SHOP, 'shop', [
        ['tenant', 'abc'],
        ['path', '/a'],
      ]),
    ).toEqual([undefined]);
    expect(applied(SHOP, 'other', [tenant])).toEqual([undefined]);
    expect(applied(SHOP, 'shop', [])).toEqual([undefined]);
  });

  it('is none without the descriptors of the rules', () => {
    const text =
      'domain: d\ndescriptors: [{key: remote_address, rate_limit: {unit: day, requests_per_unit: 0}}]';
    expect(applied(text, 'd', [['user', 'ada']], [['remote_address', '10.0.0.1']])).toEqual([
      undefined,
      'd|remote_address remote_address=10.0.0.1',
    ]);
  });

  it('is found for each list, in their order; a replaced rule does not apply', () => {
    const lists: Entries[] = [[['tenant', 'acme']], [['none', '']], [['plan', 'gold']]];
    expect(applied(SHOP, 'shop', ...lists)).toEqual([undefined, undefined, 'shop|plan=gold *']);
  });

  it('is not replaced by a shadow rule, which must not let more through', () => {
    const lists: Entries[] = [[['tenant', 'acme']], [['plan', 'trial']]];
    expect(applied(SHOP, 'shop', ...lists)).toEqual(['shop|tenant=acme *', 'shop|plan=trial *']);
  });

  it('keeps its shadow mode', () => {
    const matching = new RuleMatcher(rulesOf(SHOP)).matchLists('shop', [
      [{ key: 'plan', value: 'gold' }],
      [{ key: 'plan', value: 'trial' }],
    ]);
    expect(matching).toMatchObject({
      applied: [
        [{ rule: { unlimited: true, shadow: false } }],
        [{ rule: { unlimited: false, shadow: true } }],
      ],
    });
  });

  it('is not found if its key would be too long', () => {
    const entries = [{ key: 'tenant', value: 'z'.repeat(4_097) }];
    expect(new RuleMatcher(rulesOf(SHOP)).matchLists('shop', [entries])).toMatchObject({
      kind: 'unkeyed',
      rule: { id: 'shop|tenant' },
    });
  });
});

it('mistakes are reported with their places', () => {
  const text = `domain: ""
descriptors:
- value: x
- key: a
  share_threshold: true
  rate_limit: {unit: fortnight, requests_per_unit: 1}
- key: b
  rate_limit: {unit: year, requests_per_unit: 5000000000}
- key: b
  shadow_mode: maybe
  ratelimit: {}
- key: c
  rate_limit: {unlimited: true, unit: day, name: c, replaces: [{name: c}, {nam: d}, e]}
- - nothing
`;
  expect(reported(text)).toEqual([
    '1:1 the document needs a domain',
    '3:3 a descriptor needs a key',
    '5:3 share_threshold needs a value with a *',
    "6:22 unknown unit 'fortnight'; known here are second, minute, hour, day, week, month, year",
    '8:22 unit year is too long: a window has at most 31 days',
    '8:47 requests_per_unit must be an integer from 0 to 4294967295, but is 5000000000',
    "9:3 key 'b' with no value appears here twice; first in line 7",
    "10:16 shadow_mode must be true or false, but is 'maybe'",
    "11:3 unknown field 'ratelimit'; did you mean rate_limit?",
    '13:33 an unlimited rate_limit has no unit',
    '13:71 a rule cannot replace itself',
    '13:75 an entry of replaces needs a name',
    "13:76 unknown field 'nam'; did you mean name?",
    "13:85 an entry of replaces must have fields, but is 'e'",
    '14:3 a descriptor must have fields, but is a list of 1',
  ]);
});

it('rules that replace each other in a cycle are a mistake: none of them would apply', () => {
  const text = `domain: d
descriptors:
- {key: a, rate_limit: {name: a, unit: day, requests_per_unit: 1, replaces: [{name: b}]}}
- {key: b, rate_limit: {name: b, unit: day, requests_per_unit: 1, replaces: [{name: a}]}}
`;
  expect(reported(text)).toEqual(["4:85 rules replace each other in a circle, back to 'a'"]);
});
