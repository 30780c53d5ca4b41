/** Tests which rules apply to a request, and under which keys. */
import { describe, expect, it } from 'vitest';
import { type Matching, RuleMatcher } from '../../src/rules/match.ts';
import { rulesOf } from './read.ts';

/** Each line is a rule with a limit. */
function rules(...lines: readonly string[]): RuleMatcher {
  return new RuleMatcher(
    rulesOf(`rules:\n${lines.map((line) => `- {windows: {limit: 1, per: day}, ${line}}`).join('\n')}`),
  );
}

function match(matcher: RuleMatcher, descriptors: Record<string, string>): Matching {
  return matcher.match(new Map(Object.entries(descriptors)));
}

function ids(matcher: RuleMatcher, descriptors: Record<string, string>): string[] {
  const matching = match(matcher, descriptors);
  if (matching.kind !== 'rules') throw new Error(`no key for ${matching.rule.id}`);
  return matching.applied.map(({ rule }) => rule.id);
}

describe('conditions', () => {
  const matcher = rules(
    'id: exact, group: a, match: {endpoint: /a}',
    'id: begins, group: b, match: {endpoint: /a*}',
    "id: any, group: c, match: {endpoint: '*'}",
    'id: all, group: d, match: {endpoint: /a, method: GET, region: eu*}',
    'id: always, group: e',
  );

  it.each([
    [{ endpoint: '/a' }, ['exact', 'begins', 'any', 'always']],
    [{ endpoint: '/abc' }, ['begins', 'any', 'always']],
    [{ endpoint: '/' }, ['any', 'always']],
    [{ endpoint: '' }, ['always']],
    [{}, ['always']],
    [{ method: 'GET', region: 'eu-1' }, ['always']],
    [{ endpoint: '/a', method: 'GET', region: 'eu' }, ['exact', 'begins', 'any', 'all', 'always']],
    [{ endpoint: '/a', method: 'get', region: 'eu' }, ['exact', 'begins', 'any', 'always']],
  ])('%j', (descriptors, expected) => {
    expect(ids(matcher, descriptors)).toEqual(expected);
  });

  it('treat all names alike, also those that are special in JavaScript', () => {
    const odd = rules('id: a, match: {__proto__: x}', 'id: b, key: constructor, group: b');
    expect(ids(odd, {})).toEqual([]);
    expect(odd.match(new Map([['__proto__', 'x']]))).toMatchObject({ applied: [{ rule: { id: 'a' } }] });
    expect(ids(odd, { constructor: 'y' })).toEqual(['b']);
  });
});

describe('of one group', () => {
  it('the most specific applies: the user before the endpoint, that before the tenant, that before the tier', () => {
    const matcher = rules(
      'id: default, key: user',
      'id: tier, key: user, match: {tier: pro}',
      'id: tenant, key: user, match: {tenant: acme}',
      'id: endpoint, key: user, match: {endpoint: /a}',
      'id: user, key: user, match: {user: ada}',
    );
    const request = { user: 'ada', endpoint: '/a', tenant: 'acme', tier: 'pro' };
    expect(ids(matcher, request)).toEqual(['user']);
    expect(ids(matcher, { ...request, user: 'bob' })).toEqual(['endpoint']);
    expect(ids(matcher, { ...request, user: 'bob', endpoint: '/' })).toEqual(['tenant']);
    expect(ids(matcher, { user: 'bob', tier: 'pro' })).toEqual(['tier']);
    expect(ids(matcher, { user: 'bob' })).toEqual(['default']);
  });

  it('an exact value comes before a beginning, a longer one before a shorter one, more conditions before fewer', () => {
    const matcher = rules(
      'id: exact, match: {endpoint: /api/v1}',
      'id: long, match: {endpoint: /api/*}',
      "id: short, match: {endpoint: '/*'}",
      "id: any, match: {endpoint: '*'}",
      'id: more, match: {endpoint: /api/*, tier: pro}',
    );
    expect(ids(matcher, { endpoint: '/api/v1', tier: 'pro' })).toEqual(['exact']);
    expect(ids(matcher, { endpoint: '/api/v2', tier: 'pro' })).toEqual(['more']);
    expect(ids(matcher, { endpoint: '/api/v2' })).toEqual(['long']);
    expect(ids(matcher, { endpoint: '/x' })).toEqual(['short']);
    expect(ids(matcher, { endpoint: 'x' })).toEqual(['any']);
  });

  it('002-13: a stated priority comes before all of that', () => {
    const matcher = rules(
      'id: user, key: user, match: {user: ada}',
      'id: flood, key: user, priority: 1',
      'id: last, key: user, match: {user: ada, endpoint: /}, priority: -1',
    );
    expect(ids(matcher, { user: 'ada', endpoint: '/' })).toEqual(['flood']);
  });

  it('equal ones apply together: the stricter one decides', () => {
    const matcher = rules(
      'id: a, key: user, match: {endpoint: /a}',
      'id: post, key: user, match: {method: POST}',
      'id: default, key: user',
    );
    expect(ids(matcher, { user: 'ada', endpoint: '/a', method: 'POST' })).toEqual(['a', 'post']);
  });

  it('a disabled rule has no effect', () => {
    const matcher = rules('id: a, key: user', 'id: b, key: user, match: {user: ada}, enabled: false');
    expect(ids(matcher, { user: 'ada' })).toEqual(['a']);
  });

  it('a shadow rule replaces no enforced rule, and is reported where it would', () => {
    const matcher = rules(
      'id: a, key: user',
      'id: shadowed, key: user, match: {user: ada}, shadow: true',
      'id: weak, key: user, match: {tier: pro}, shadow: true',
    );
    expect(ids(matcher, { user: 'ada', tier: 'pro' })).toEqual(['a', 'shadowed']);
    expect(ids(matcher, { user: 'bob', tier: 'pro' })).toEqual(['a', 'weak']);
  });
});

describe('of other groups', () => {
  it('002-19: all apply; the group of a rule is its key, unless it states one', () => {
    const matcher = rules(
      'id: user, key: user',
      'id: ip, key: ip',
      'id: net, key: ip/24',
      'id: both, key: [ip, user]',
      'id: both2, key: [user, ip], match: {user: ada}',
      'id: all',
      'id: own, key: user, group: mine',
      'id: theirs, key: endpoint, group: user, priority: 1',
    );
    const request = { user: 'ada', ip: '10.0.0.1' };
    expect(ids(matcher, request)).toEqual(['user', 'ip', 'net', 'both2', 'all', 'own']);
    expect(ids(matcher, { ...request, endpoint: '/' })).toEqual([
      'ip',
      'net',
      'both2',
      'all',
      'own',
      'theirs',
    ]);
  });

  it('002-25: a rule does not apply to a request without a descriptor of its key', () => {
    const matcher = rules('id: keyed, key: apiKey', 'id: ip, key: ip');
    expect(ids(matcher, { ip: '::1' })).toEqual(['ip']);
    expect(ids(matcher, { ip: '::1', apiKey: '' })).toEqual(['ip']);
    expect(ids(matcher, { ip: '::1', apiKey: 'k' })).toEqual(['keyed', 'ip']);
  });

  it('a rule that another one replaces does not apply with it; a shadow rule replaces no enforced rule', () => {
    const matcher = rules(
      'id: user, key: user',
      'id: ip, key: ip',
      'id: trusted, match: {network: office}, replaces: [user, ip]',
      'id: shadowed, match: {network: home}, replaces: [user, net], shadow: true',
      'id: net, key: ip/24, shadow: true',
    );
    const request = { user: 'ada', ip: '10.0.0.1' };
    expect(ids(matcher, request)).toEqual(['user', 'ip', 'net']);
    expect(ids(matcher, { ...request, network: 'office' })).toEqual(['trusted', 'net']);
    expect(ids(matcher, { ...request, network: 'home' })).toEqual(['user', 'ip', 'shadowed']);
  });
});

describe('the match of a rule that applies', () => {
  it('001-03: has the factor of the cost, by endpoint', () => {
    const matcher = rules('id: a, key: user, cost: {/big/*: 5, /big/one: 9, "*": 2}', 'id: b, cost: 3');
    const costs = (endpoint: string): unknown => {
      const matching = match(matcher, { user: 'ada', endpoint });
      return matching.kind === 'rules' && matching.applied.map(({ cost }) => cost);
    };
    expect(costs('/big/one')).toEqual([9, 3]);
    expect(costs('/big/two')).toEqual([5, 3]);
    expect(costs('/')).toEqual([2, 3]);
    expect(costs('')).toEqual([2, 3]);
  });

  it('003-01: has the key of all parts that the rule counts by', () => {
    const matcher = rules('id: a, key: [user, endpoint, ip/24/48]');
    const request = { user: 'a=b', endpoint: '/a&b', ip: '2001:db8:1:2::3' };
    expect(match(matcher, request)).toMatchObject({
      applied: [{ key: 'endpoint=/a&b,ip/24/48=2001:db8:1::,user=a=b' }],
    });
  });

  it('is a refusal if there is no key, unless the rule is in shadow or unlimited', () => {
    const long = { user: 'x'.repeat(4_097) };
    expect(match(rules('id: a, key: user'), long)).toMatchObject({ kind: 'unkeyed', rule: { id: 'a' } });
    expect(match(rules('id: a, key: user'), { user: '\ud800' })).toMatchObject({ kind: 'unkeyed' });
    expect(ids(rules('id: a, key: user, shadow: true'), long)).toEqual([]);
    const free = new RuleMatcher(rulesOf('rules: [{id: a, key: user, unlimited: true}]'));
    expect(match(free, long)).toMatchObject({ applied: [{ key: '*', rule: { unlimited: true } }] });
    expect(ids(rules('id: a, key: user'), { user: 'x'.repeat(1_019) })).toEqual(['a']);
  });
});
