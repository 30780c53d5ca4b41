/** Tests the logic of the keys views without a browser: search, limits of a key, and its denials in words. */
import { describe, expect, it } from 'vitest';
import { USAGE_TOP_MAX, type TopKey, type UsageReport } from '../../src/api/usage.ts';
import { denialsInWords, type KeyStatus, limitsOfKey, verdictOn } from '../../src/dashboard/key-status.ts';
import { isKeyText, keysMeant, KEYS_SOUGHT_MAX, parsedDescriptors } from '../../src/dashboard/key-search.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';

function definitionsOf(text: string): readonly RuleDefinition[] {
  const read = readRules(text);
  if (read.kind === 'mistakes') throw new Error(JSON.stringify(read.mistakes));
  return read.definitions;
}

const RULES = definitionsOf(`
rules:
  - { id: per-user, key: user, windows: { limit: 5, per: hour } }
  - { id: per-network, key: ip/24/64, windows: { limit: 9, per: hour } }
  - { id: per-seat, key: [seat, user], windows: { limit: 9, per: hour } }
  - { id: per-seller, key: seller, windows: { limit: 9, per: hour } }
  - { id: reports, match: { endpoint: /reports/* }, key: user, group: reports, windows: { limit: 2, per: hour } }
  - { id: partner, match: { user: partner-7 }, key: user, group: partner, windows: { limit: 1, per: hour } }
  - { id: staff, match: { user: root }, key: user, unlimited: true }
  - { id: pro, match: { tier: pro }, key: customer, group: c, windows: { limit: 90, per: hour } }
  - { id: trial, key: user, group: trial, windows: { limit: 1, per: hour }, shadow: true }
`);

function seen(...keys: string[]): readonly TopKey[] {
  return keys.map((key) => ({ rule: 'r', key, count: 1, error: 0 }));
}

function keyStatus(
  key: string,
  used: Readonly<Record<string, readonly [used: number, limit: number]>>,
  more: Partial<KeyStatus> = {},
): KeyStatus {
  const limits = Object.entries(used).map(([rule, [count, limit]]) => ({
    rule,
    limit,
    windowMillis: 3_600_000,
    remaining: limit - count,
    resetMillis: count === 0 ? 0 : 1_000_000,
    ...(count >= limit && { retryAfterMillis: 60_000 }),
  }));
  return { key, limits, decided: { timeMillis: 1_000 }, rulesVersion: 3, ...more };
}

function reportOf(denied: readonly TopKey[]): UsageReport {
  return { top: { fromMillis: 0, allowed: [], denied } } as unknown as UsageReport;
}

describe('a search for a value', () => {
  it('finds the key that each rule with one value would make of it, counted or not', () => {
    expect(keysMeant('mallory', RULES, [])).toEqual(['user=mallory', 'customer=mallory', 'seller=mallory']);
  });

  it('finds keys of several values if the rule fixes the other values', () => {
    const rules = definitionsOf(
      'rules: [{ id: s, match: { endpoint: /search, user: "m*" }, key: [endpoint, user], windows: { limit: 5, per: hour } }]',
    );
    expect(keysMeant('mallory', rules, [])).toContain('endpoint=/search,user=mallory');
  });

  it('finds the key of a rule for one value by that value alone', () => {
    expect(keysMeant('partner-7', RULES, []).filter((key) => key === 'user=partner-7')).toHaveLength(1);
    const rules = definitionsOf(
      'rules: [{ id: p, match: { seat: 7 }, key: seat, windows: { limit: 5, per: hour } }]',
    );
    expect([keysMeant('7', rules, []), keysMeant('8', rules, [])]).toEqual([
      ['user=7', 'customer=7', 'seat=7'],
      ['user=8', 'customer=8'],
    ]);
  });

  it('finds the network of an address', () => {
    expect(keysMeant('203.0.113.7', RULES, [])).toContain('ip/24/64=203.0.113.0');
  });

  it('finds keys of several values among those that were counted, whole values first', () => {
    const keys = keysMeant('mall', RULES, seen('seat=9,user=mallory', 'user=ada', 'seat=9,user=mall', '*'));
    expect(keys.slice(-2)).toEqual(['seat=9,user=mall', 'seat=9,user=mallory']);
    expect(keys).not.toContain('user=ada');
  });

  it('is bounded', () => {
    const many = seen(...Array.from({ length: 99 }, (_, i) => `seat=${i},user=mallory`));
    expect(keysMeant('mallory', RULES, many)).toHaveLength(KEYS_SOUGHT_MAX);
  });

  it('escapes the same characters as a key', () => {
    expect(keysMeant('a,b', RULES, [])[0]).toBe('user=a%2cb');
  });

  it.each(['user=mallory', 'endpoint=/a,user=mallory', '*'])(
    'finds only the key %s if the text is a key',
    (key) => {
      expect(isKeyText(key)).toBe(true);
      expect(keysMeant(key, RULES, seen('user=mallory'))).toEqual([key]);
    },
  );
});

describe('the limits of a key', () => {
  const used = { 'per-user/hour': [5, 5], 'reports/hour': [0, 2], 'partner/hour': [0, 1] } as const;

  it('are those of rules that count it, and not of rules whose conditions exclude it', () => {
    const { counting, others } = limitsOfKey(keyStatus('user=ada', used), RULES);
    expect(counting.map(({ rule }) => rule)).toEqual(['per-user/hour']);
    expect(others).toMatchObject([{ rule: 'reports/hour', where: 'endpoint is /reports/*' }]);
    const partner = limitsOfKey(keyStatus('user=partner-7', used), RULES);
    expect(partner.counting.map(({ rule }) => rule)).toContain('partner/hour');
  });

  it('include those of a rule with other conditions once it has counted the key', () => {
    const counted = { ...used, 'reports/hour': [1, 2] } as const;
    const { counting } = limitsOfKey(keyStatus('user=ada', counted), RULES);
    expect(counting.map(({ rule }) => rule)).toEqual(['per-user/hour', 'reports/hour']);
  });

  it('are none for a key that a rule makes unlimited', () => {
    const free = keyStatus('user=root', { 'per-user/hour': [0, 5] });
    const limits = limitsOfKey(free, RULES);
    expect(limits.unlimited.map(({ id }) => id)).toEqual(['staff']);
    expect(verdictOn(free, limits)).toEqual({ verdict: 'noRule', words: 'no limit, by rule staff' });
  });

  it('are those of the tier of a customer', () => {
    const acme = keyStatus('customer=acme', { 'pro/hour': [0, 90] });
    expect(limitsOfKey(acme, RULES, 'pro').counting.map(({ rule }) => rule)).toEqual(['pro/hour']);
    expect(limitsOfKey(acme, RULES, 'free').counting).toEqual([]);
  });
});

describe('the verdict on a key', () => {
  it.each([
    [{ 'per-user/hour': [5, 5] }, {}, 'denied', 'denied by per-user/hour for 1 min'],
    [{ 'per-user/hour': [3, 5] }, {}, 'counted', '2 of 5 left under per-user/hour'],
    [{ 'per-user/hour': [0, 5] }, {}, 'nothing', 'nothing counted; 5 of 5 left under per-user/hour'],
    [{ 'per-user/hour': [1, 5], 'trial/hour': [1, 1] }, {}, 'counted', '4 of 5 left under per-user/hour'],
    [{}, { blocked: true, blockedUntilMillis: 61_000 }, 'blocked', 'blocked, for 1 min more'],
    [{}, { unmatched: true }, 'denied', 'denied: no rule matches it'],
    [{}, {}, 'noRule', 'no rule counts it'],
  ] as const)('on %j with %j is %s: %s', (used, more, verdict, words) => {
    const found = keyStatus('user=ada', used, more);
    expect(verdictOn(found, limitsOfKey(found, RULES))).toEqual({ verdict, words });
  });
});

describe('the last denials of a key', () => {
  it('are reported by rule, with the bounds of the counts', () => {
    const rows = [
      { rule: 'a', key: 'user=ada', count: 30, error: 0 },
      { rule: 'b', key: 'user=ada', count: 9, error: 2 },
    ];
    expect(denialsInWords('user=ada', reportOf(rows)).map((words) => words.replace(/ since .*/, ''))).toEqual(
      ['30 denied by a', '7 to 9 denied by b'],
    );
  });

  it('were none if the list has room and does not contain the key', () => {
    expect(denialsInWords('user=ada', reportOf(seen('user=eve')))[0]).toMatch(/^No denial was counted since/);
  });

  it('were no more than those of the last key in a full list', () => {
    const full = Array.from({ length: USAGE_TOP_MAX }, (_, i) => ({
      ...seen(`user=${i}`)[0],
      count: 50 + i,
    }));
    const [words] = denialsInWords('user=ada', reportOf(full as TopKey[]));
    expect(words).toMatch(/^At most 50 requests were denied/);
  });

  it('are unknown to a token that must not see keys', () => {
    expect(denialsInWords('user=ada', {} as UsageReport)[0]).toMatch(/shown to tokens/);
  });
});

describe('the other descriptors of a request', () => {
  it('are read as names and values', () => {
    expect(parsedDescriptors(' endpoint=/a?b=c , ip=::1,')).toEqual({ endpoint: '/a?b=c', ip: '::1' });
    expect(parsedDescriptors('')).toEqual({});
    expect(parsedDescriptors('endpoint')).toBe("'endpoint' must be name=value");
  });
});
