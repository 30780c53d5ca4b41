/** Tests the differences between two rule sets, and their descriptions. */
import { describe, expect, it } from 'vitest';
import { diffRules, type RuleChange } from '../../src/rules/diff.ts';
import { rulesOf, TIERS } from './read.ts';

function diff(before: string, after: string): readonly RuleChange[] {
  return diffRules(rulesOf(before), rulesOf(after));
}

function onKey(value: string): string {
  return `{key: k, value: '${value}', rate_limit: {unit: day, requests_per_unit: 1}}`;
}

function onKeys(...values: string[]): string {
  return `{domain: d, descriptors: [${values.map(onKey).join()}]}`;
}

function oneRule(line: string): string {
  const windows = /windows|unlimited/.test(line) ? '' : 'windows: {limit: 10, per: minute}, ';
  return `rules:\n- {id: a, ${windows}${line}}\n- {id: b, windows: {limit: 1, per: day}}`;
}

/** A document in Envoy's form. */
function limited(more: string): string {
  return `{domain: d, descriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1${more}}}]}`;
}

/** The definition of one rule with these fields. */
function fields(before: string, after: string): unknown[] {
  return diff(oneRule(before), oneRule(after)).flatMap((change): unknown[] =>
    change.kind === 'changed'
      ? [
          change.binds,
          ...change.fields.map(({ field, before, after, binds }) => [field, before, after, binds]),
        ]
      : [change.words],
  );
}

describe('a difference', () => {
  it('reports a limit that becomes post-paid as looser', () => {
    const [change] = diff(limited(''), limited(', post_paid: true'));
    expect(change).toMatchObject({ kind: 'changed', binds: 'looser', fields: [{ field: 'post_paid' }] });
  });

  it('is empty between documents with the same meaning', () => {
    expect(diff(TIERS, TIERS.replace('rate_limits:', 'rate_limits: # these'))).toEqual([]);
    expect(fields('key: [user, ip], failMode: closed', 'key: [ip, user], enabled: true')).toEqual([]);
  });

  it('reports removed and added rules, in words', () => {
    const after = TIERS.replace('free:', 'basic:').replace('burst: 50', 'burst: 60');
    expect(diff(TIERS, after).map(({ words }) => words)).toEqual([
      'tier/free is removed: 100 per minute and 10,000 per day by customer, where tier is free',
      'tier/basic is added: 100 per minute and 10,000 per day by customer, where tier is basic',
      'endpoint//api/v1/charges becomes looser',
    ]);
  });

  it.each([
    ['windows: {limit: 10, per: minute}', 'windows: {limit: 9, per: minute}', 'limit per minute', 'tighter'],
    ['windows: {limit: 10, per: day}', 'windows: {limit: 11, per: day}', 'limit per day', 'looser'],
    ['unlimited: true', 'windows: {limit: 11, per: day}', 'unlimited', 'tighter'],
    ['match: {tier: a}', 'match: {tier: b}', 'match', 'differently'],
    ['key: user, group: g', 'key: [user, endpoint], group: g', 'key', 'looser'],
    ['key: [user, endpoint], group: g', 'key: user, group: g', 'key', 'tighter'],
    ['key: user, group: g', 'key: ip/24, group: g', 'key', 'differently'],
    ['meter: slidingLog', 'meter: fixedWindow', 'meter', 'looser'],
    ['meter: tokenBucket', 'meter: slidingLog', 'meter', 'tighter'],
    ['meter: tokenBucket', 'meter: leakyBucket', 'meter', 'differently'],
    ['meter: tokenBucket, burst: 20', 'meter: tokenBucket', 'burst', 'tighter'],
    ['meter: tokenBucket, burst: 20', 'meter: tokenBucket, burst: 21', 'burst', 'looser'],
    ['meter: tokenBucket, burst: 10', 'meter: tokenBucket', 'burst', 'alike'],
    ['cost: 1', 'cost: 2', 'cost', 'tighter'],
    ['cost: {/a: 2}', 'cost: {/a: 3}', 'cost', 'differently'],
    ['clock: request', 'clock: cluster', 'clock', 'differently'],
    ['failMode: open', 'failMode: local', 'failMode', 'tighter'],
    ['failMode: closed', 'failMode: local', 'failMode', 'looser'],
    ['enabled: true', 'enabled: false', 'enabled', 'looser'],
    ['shadow: true', 'shadow: false', 'shadow', 'tighter'],
    ['priority: 1', 'priority: 2', 'priority', 'differently'],
    ['group: g', 'group: h', 'group', 'differently'],
    ['replaces: []', 'replaces: b', 'replaces', 'looser'],
    ['replaces: b', 'replaces: []', 'replaces', 'tighter'],
    ['comment: a', 'comment: b', 'comment', 'alike'],
  ])('from %s to %s is in %s and binds %s', (before, after, field, binds) => {
    const [together, ...changes] = fields(before, after);
    expect(together).toBe(binds);
    expect(changes).toContainEqual([field, expect.any(String), expect.any(String), binds]);
  });

  it('of several fields is tighter or looser if all of them are, else different', () => {
    expect(
      fields(
        'comment: old, windows: [{limit: 10, per: minute}, {limit: 5, windowMillis: 1500}]',
        'comment: new, windows: [{limit: 9, per: minute}, {limit: 1000, per: day}, {limit: 5, windowMillis: 1500}]',
      ),
    ).toEqual([
      'tighter',
      ['limit per minute', '10 per minute', '9 per minute', 'tighter'],
      ['limit per day', 'none', '1,000 per day', 'tighter'],
      ['comment', 'old', 'new', 'alike'],
    ]);
    expect(fields('windows: {limit: 10, per: minute}', 'windows: {limit: 100, per: hour}')).toEqual([
      'differently',
      ['limit per minute', '10 per minute', 'none', 'looser'],
      ['limit per hour', 'none', '100 per hour', 'tighter'],
    ]);
  });

  it('reports the order of value patterns, but not of other rules', () => {
    expect(diff(onKeys('a', 'b', 'a*'), onKeys('a*', 'b', 'a'))).toEqual([]);
    expect(diff(onKeys('a*', '*b'), onKeys('*b', 'a*'))).toEqual([
      {
        kind: 'reordered',
        words: 'value patterns come in another order; the first one that fits applies',
      },
    ]);
    const shared = onKeys('a*').replace("'a*'", "'a*', share_threshold: true");
    expect(diff(onKeys('a*'), shared)).toMatchObject([{ kind: 'changed', fields: [{ field: 'key' }] }]);
  });
});
