/** Tests the sums of usage for each rule, and the key nearest to its limit. */
import { describe, expect, it } from 'vitest';
import type { TopKey, UsageReport } from '../../src/api/usage.ts';
import type { KeyStatus } from '../../src/dashboard/key-status.ts';
import {
  countsOf,
  groupsOf,
  KEYS_ASKED_MAX,
  keysToAsk,
  nearestOf,
  otherRows,
} from '../../src/dashboard/rules-usage.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';

function definitionsOf(text: string): readonly RuleDefinition[] {
  const read = readRules(text);
  if (read.kind === 'mistakes') throw new Error(JSON.stringify(read.mistakes));
  return read.definitions;
}

const RULES = definitionsOf(`
unmatched: shadow
rules:
  - { id: trial, key: user, group: trial, windows: { limit: 1, per: hour }, shadow: true }
  - { id: per-customer, key: customer, windows: { limit: 9, per: hour } }
  - { id: per-user, key: user, windows: [{ limit: 5, per: hour }, { limit: 9, per: day }] }
`);

function row(rule: string, counts: Partial<UsageReport['rules'][number]>): UsageReport['rules'][number] {
  const none = { allowed: 0, denied: 0, unavailable: 0, degraded: 0, wouldAllow: 0, wouldDeny: 0 };
  return { rule, ...none, ...counts };
}

function top(rule: string, ...keys: string[]): readonly TopKey[] {
  return keys.map((key) => ({ rule, key, count: 1, error: 0 }));
}

function keyStatus(key: string, rule: string, remaining: number, retryAfterMillis?: number): KeyStatus {
  const limit = { rule, limit: 10, windowMillis: 3_600_000, remaining, resetMillis: 1_000 };
  const limits = [{ ...limit, ...(retryAfterMillis !== undefined && { retryAfterMillis }) }];
  return { key, limits, decided: { timeMillis: 0 }, rulesVersion: 1 };
}

describe('the rules in use', () => {
  it('have the counts of all their windows', () => {
    const rows = [
      row('per-user/hour', { allowed: 3, denied: 2 }),
      row('per-user/day', { denied: 4 }),
      row('trial/hour', { wouldAllow: 1, wouldDeny: 7 }),
      row('unmatched', { wouldDeny: 6 }),
    ];
    const counts = new Map(RULES.map((rule) => [rule.id, countsOf(rule, rows)]));
    expect(counts.get('per-user')).toEqual({ allowed: 3, denied: 6, wouldAllow: 0, wouldDeny: 0 });
    expect(counts.get('trial')).toMatchObject({ wouldAllow: 1, wouldDeny: 7 });
    expect(counts.get('unmatched')).toMatchObject({ wouldDeny: 6 });
    expect(otherRows([...rows, row('OTHER', { denied: 1 })], RULES)).toEqual([row('OTHER', { denied: 1 })]);
  });

  it('are grouped by their keys: a shadow rule follows the enforced rules that count the same', () => {
    expect(groupsOf(RULES).map(({ words, rules }) => [words, rules.map(({ id }) => id)])).toEqual([
      ['Counts by user', ['per-user', 'trial']],
      ['Counts by customer', ['per-customer']],
      ['Requests that no rule matches', ['unmatched']],
    ]);
  });

  it('each have a key nearest to the limit: by the used fraction, then by the wait', () => {
    const keyStatuses = [
      keyStatus('user=a', 'per-user/hour', 4),
      keyStatus('user=b', 'per-user/day', 0, 1_000),
      keyStatus('user=c', 'per-user/hour', 0, 2_000),
      keyStatus('user=d', 'trial/hour', 9),
      { ...keyStatus('user=e', 'per-customer/hour', 10), limits: [] },
    ];
    const nearest = nearestOf(keyStatuses, RULES);
    expect([...nearest].map(([rule, { key }]) => [rule, key])).toEqual([
      ['per-user', 'user=c'],
      ['trial', 'user=d'],
    ]);
  });

  it('take turns in the list of keys to ask for, so that a busy rule does not displace another', () => {
    const many = Array.from({ length: 99 }, (_, i) => `user=${i}`);
    const keys = keysToAsk({
      top: { fromMillis: 0, denied: top('a', ...many), allowed: top('b', 'customer=x', 'user=0') },
    });
    expect(keys.slice(0, 3)).toEqual(['user=0', 'customer=x', 'user=1']);
    expect(keys).toHaveLength(KEYS_ASKED_MAX);
    expect(keysToAsk({})).toEqual([]);
  });
});
