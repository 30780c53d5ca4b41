/** Tests rules.yaml, requirement by requirement. */
import { describe, expect, it } from 'vitest';
import { RuleMatcher } from '../../src/rules/match.ts';
import { noted, rulesOf, reported, TIERS } from './read.ts';

/** The ids of the rules that apply, and the keys. */
function applied(text: string, descriptors: Record<string, string>): string[] {
  const matching = new RuleMatcher(rulesOf(text)).match(new Map(Object.entries(descriptors)));
  if (matching.kind !== 'rules') throw new Error(`no key for ${matching.rule.id}`);
  return matching.applied.map(({ rule, key }) => `${rule.id} ${key}`);
}

function dayOf(limit: number, meter: string): string {
  return `rules: [{id: r, key: user, meter: ${meter}, windows: {limit: ${limit}, per: day}}]`;
}

describe('a limit', () => {
  it('of a fixed window may be in the billions', () => {
    const [rule] = rulesOf(dayOf(4_294_967_295, 'fixedWindow'));
    expect(rule?.windows).toMatchObject([{ limit: 4_294_967_295 }]);
    expect(reported(dayOf(4_294_967_296, 'fixedWindow'))).toEqual([
      expect.stringContaining('limit must be an integer from 0 to 4294967295, but is 4294967296'),
    ]);
  });

  it.each(['slidingLog', 'slidingCounter', 'tokenBucket', 'leakyBucket'])(
    'of a %s is at most a million',
    (meter) => {
      expect(rulesOf(dayOf(1_000_000, meter))).toHaveLength(1);
      expect(reported(dayOf(1_000_001, meter))).toEqual([
        expect.stringContaining('limit must be an integer from 0 to 1000000, but is 1000001'),
      ]);
    },
  );
});

describe('a rule', () => {
  it('may have all fields', () => {
    const [rule] = rulesOf(`
rules:
  - id: uploads
    match: {tier: free, endpoint: /upload/*, method: POST}
    key: [user, ip/24]
    windows: [{limit: 1000, per: day}, {limit: 5, windowMillis: 1500}]
    meter: tokenBucket
    burst: 9
    cost: {/upload/big: 10, /upload/*: 2, '*': 3}
    clock: cluster
    failMode: local
    enabled: false
    priority: 7
    group: uploads
    shadow: true
    comment: uploads are dear
`);
    expect(rule).toEqual({
      id: 'uploads',
      name: 'uploads',
      scope: {
        kind: 'descriptors',
        conditions: [
          { name: 'endpoint', value: '/upload/*' },
          { name: 'method', value: 'POST' },
          { name: 'tier', value: 'free' },
        ],
        key: [{ name: 'ip', bits: { ipv4: 24, ipv6: 64 } }, { name: 'user' }],
      },
      group: 'uploads',
      priority: 7,
      windows: [
        { limit: 5, windowMillis: 1_500 },
        { limit: 1_000, windowMillis: 86_400_000 },
      ],
      meter: 'tokenBucket',
      burst: 9,
      cost: {
        otherwise: 3,
        endpoints: [
          { endpoint: '/upload/big', cost: 10 },
          { endpoint: '/upload/*', cost: 2 },
        ],
      },
      clock: 'cluster',
      failMode: 'local',
      enabled: false,
      shadow: true,
      unlimited: false,
      replaces: [],
      comment: 'uploads are dear',
    });
  });

  it('000-10, 000-13, 000-22: has strict defaults: a sliding log, closed, enabled, a cost of 1', () => {
    const [rule] = rulesOf('rules: [{id: per-user, key: user, windows: {limit: 100, per: minute}}]');
    expect(rule).toEqual({
      id: 'per-user',
      name: 'per-user',
      scope: { kind: 'descriptors', conditions: [], key: [{ name: 'user' }] },
      group: 'user',
      priority: 0,
      windows: [{ limit: 100, windowMillis: 60_000 }],
      meter: 'slidingLog',
      cost: { otherwise: 1, endpoints: [] },
      clock: 'request',
      failMode: 'closed',
      enabled: true,
      shadow: false,
      unlimited: false,
      replaces: [],
    });
  });

  it('is the same in JSON', () => {
    const yaml = 'rules:\n- id: a\n  key: [user]\n  windows:\n  - limit: 1\n    per: second\n';
    const json = '{"rules": [{"id": "a", "key": ["user"], "windows": [{"limit": 1, "per": "second"}]}]}';
    expect(rulesOf(json)).toEqual(rulesOf(yaml));
    expect(rulesOf(JSON.stringify(JSON.parse(json), null, '\t'))).toEqual(rulesOf(yaml));
  });

  it('may be written once and repeated by an alias', () => {
    const rules = rulesOf(
      'rules:\n- {id: a, windows: &w [{limit: 1, per: hour}]}\n- {id: b, key: user, windows: *w}',
    );
    expect(rules[1]?.windows).toEqual(rules[0]?.windows);
  });

  it('may take fields from others by a merge key: its own field counts, then the first that has it', () => {
    const [a, b, c] = rulesOf(`rules:
- &a {id: a, key: user, windows: {limit: 1, per: hour}}
- &b {id: b, priority: 3, <<: *a}
- {<<: [*b, {id: unused, enabled: false, priority: 4}], id: c, key: ip}
`);
    expect(b).toMatchObject({ id: 'b', priority: 3, windows: a?.windows });
    expect(c).toMatchObject({ id: 'c', priority: 3, enabled: false, windows: a?.windows });
    expect(reported('rules: [{id: a, key: user, windows: {limit: 1, per: hour, <<: day}}]')).toEqual([
      '1:63 << must name a map of fields, or a list of them, such as <<: *other',
    ]);
    expect(reported("rules: [{id: a, key: user, windows: {limit: 1, per: hour, '<<': day}}]")).toEqual([
      expect.stringMatching("1:59 unknown field '<<'"),
    ]);
  });

  it('may name customers by digits: the written text counts', () => {
    const [rule] = rulesOf('rules: [{id: 17, match: {customer: 0042}, windows: {limit: 1, per: day}}]');
    expect(rule).toMatchObject({ id: '17', scope: { conditions: [{ name: 'customer', value: '0042' }] } });
  });

  it('002-02, 001-02, 001-07: has any of five meters and of three fail modes', () => {
    for (const meter of ['slidingLog', 'slidingCounter', 'fixedWindow', 'tokenBucket', 'leakyBucket']) {
      for (const failMode of ['closed', 'open', 'local']) {
        const text = `rules: [{id: a, meter: ${meter}, failMode: ${failMode}, windows: {limit: 1, per: month}}]`;
        expect(rulesOf(text)).toMatchObject([
          { meter, failMode, windows: [{ limit: 1, windowMillis: 2_592_000_000 }] },
        ]);
      }
    }
  });

  it('gets a note if its descriptor is similar to a well-known one', () => {
    const text = 'rules: [{id: a, key: custmer, windows: {limit: 1, per: day}}]';
    expect(noted(text)).toEqual(["1:22 'custmer' is a descriptor of your own; did you mean customer?"]);
    expect(noted(text.replace('custmer', 'remote_address'))).toEqual([]);
  });
});

describe('002-12: limits by default, tier, endpoint and customer', () => {
  it('become rules with their windows, and token buckets if there is a burst', () => {
    const reported = rulesOf(TIERS).map(({ id, windows, meter, burst }) => [id, windows, meter, burst]);
    const [second, minute, day] = [1_000, 60_000, 86_400_000];
    expect(reported).toEqual([
      ...['default', 'default/user', 'default/ip', 'default/all'].map((id) => [
        id,
        [{ limit: 100, windowMillis: second }],
        'tokenBucket',
        200,
      ]),
      [
        'tier/free',
        [
          { limit: 100, windowMillis: minute },
          { limit: 10_000, windowMillis: day },
        ],
        'slidingLog',
        undefined,
      ],
      [
        'tier/pro',
        [
          { limit: 1_000, windowMillis: minute },
          { limit: 100_000, windowMillis: day },
        ],
        'slidingLog',
        undefined,
      ],
      ['tier/enterprise', [{ limit: 10_000, windowMillis: minute }], 'slidingLog', undefined],
      ['endpoint//api/v1/charges', [{ limit: 25, windowMillis: second }], 'tokenBucket', 50],
      ['endpoint//api/v1/customers', [{ limit: 100, windowMillis: second }], 'tokenBucket', 200],
      ['endpoint//api/v1/reports', [{ limit: 10, windowMillis: minute }], 'slidingLog', undefined],
      ['customer/cust_enterprise_123', [{ limit: 500, windowMillis: second }], 'tokenBucket', 1_000],
    ]);
    expect(rulesOf(TIERS)[9]?.comment).toBe('reports read everything there is');
  });

  it('002-13, 002-16: the limit of a customer comes before that of its tier, and that before the default', () => {
    const vip = { customer: 'cust_enterprise_123', tier: 'enterprise' };
    expect(applied(TIERS, vip)).toEqual(['customer/cust_enterprise_123 customer=cust_enterprise_123']);
    expect(applied(TIERS, { customer: 'ada', tier: 'free' })).toEqual(['tier/free customer=ada']);
    expect(applied(TIERS, { customer: 'ada', tier: 'gold' })).toEqual(['default customer=ada']);
    expect(applied(TIERS, { customer: 'ada' })).toEqual(['default customer=ada']);
  });

  it('the default applies to requests without a customer: by user, else by address, else together', () => {
    const user = { user: 'ada', ip: '10.0.0.1', tier: 'pro', endpoint: '/api/v1/charges' };
    expect(applied(TIERS, user)).toEqual(['default/user user=ada']);
    expect(applied(TIERS, { ip: '10.0.0.1', tier: 'pro' })).toEqual(['default/ip ip=10.0.0.1']);
    expect(applied(TIERS, { usr: 'misspelt' })).toEqual(['default/all *']);
    expect(applied(TIERS, { ...user, customer: 'acme' })).toEqual([
      'tier/pro customer=acme',
      'endpoint//api/v1/charges customer=acme',
    ]);
    const first = 'default: {per_day: 1, priority: -1000}';
    expect(applied(first, { user: 'ada', customer: 'acme' })).toContain('default customer=acme');
  });

  it('002-03, 002-19: the limit of an endpoint applies in addition, so the most restrictive decides', () => {
    const charges = { customer: 'ada', tier: 'free', endpoint: '/api/v1/charges' };
    expect(applied(TIERS, charges)).toEqual([
      'tier/free customer=ada',
      'endpoint//api/v1/charges customer=ada',
    ]);
    expect(applied(TIERS, { ...charges, endpoint: '/else' })).toEqual(['tier/free customer=ada']);
  });

  it('may be lists, at the top of the document, and beside rules', () => {
    const text = `
rules: [{id: per-ip, key: ip, windows: {limit: 50, per: second}}]
default: {per_second: 100}
endpoints:
  - {path: POST /api/*, per_minute: 10, burst_size: 20, priority: 3, enabled: true}
customers:
  - {customer_id: acme, per_hour: unlimited, per_day: -1}
`;
    const rules = rulesOf(text);
    expect(rules.map(({ id }) => id)).toEqual([
      'per-ip',
      'default',
      'default/user',
      'default/ip',
      'default/all',
      'endpoint/POST /api/*',
      'customer/acme',
    ]);
    expect(rules[5]).toMatchObject({
      scope: {
        conditions: [
          { name: 'endpoint', value: '/api/*' },
          { name: 'method', value: 'POST' },
        ],
      },
      priority: 3,
      burst: 20,
    });
    expect(rules[6]).toMatchObject({ unlimited: true, windows: [] });
    expect(applied(text, { customer: 'acme', ip: '::1', endpoint: '/api/x', method: 'POST' })).toEqual([
      'per-ip ip=0:0:0:0:0:0:0:1',
      'endpoint/POST /api/* customer=acme',
      'customer/acme *',
    ]);
  });

  it('have mistakes with line and column', () => {
    expect(
      reported('tiers:\n  free: {requests_per_minut: 5}\n  pro: {requests_per_day: lots, burst: 0}'),
    ).toEqual([
      '2:9 no limit is stated here; it needs one of requests_per_second, per_second, requests_per_minute, ' +
        'per_minute, requests_per_hour, per_hour, requests_per_day, per_day, requests_per_week, per_week, ' +
        'requests_per_month, per_month',
      "2:10 unknown field 'requests_per_minut'; did you mean requests_per_minute?",
      "3:27 requests_per_day must be an integer from 0 to 1000000, or unlimited, but is 'lots'",
      '3:40 burst must be an integer from 1 to 1000000, but is 0',
    ]);
  });
});
