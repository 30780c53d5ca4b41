/** Tests the part of replaced rules that is kept: which requests they matched, and their keys. */
import { describe, expect, it } from 'vitest';
import { RuleMatcher } from '../../src/rules/match.ts';
import { matchingForm } from '../../src/rules/matching-form.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';
import { rulesOf } from './read.ts';

const DOCUMENT = `
rules:
  - { id: user, key: user, windows: [{ limit: 2, per: minute }, { limit: 5, per: hour }] }
  - { id: dear, match: { endpoint: /dear/* }, key: ip, group: dear, windows: { limit: 9, per: minute }, cost: { /dear/x: 3 } }
  - { id: boss, match: { user: boss }, key: user, unlimited: true }
  - { id: batch, named: true, key: org, windows: { limit: 1, per: minute } }
`;

function formOf(document: string): string {
  return matchingForm(rulesOf(document));
}

describe('how rules match', () => {
  it('is the same for other limits, meters, fail modes and shadow rules', () => {
    const others = DOCUMENT.replaceAll(/limit: \d/g, 'limit: 7')
      .replace(', { limit: 5, per: hour }', '')
      .replace('key: ip,', 'key: ip, failMode: open, meter: slidingCounter,')
      .replace(', cost: { /dear/x: 3 }', '')
      .concat(
        '  - { id: shadowed, key: ip, group: shadowed, windows: { limit: 1, per: minute }, shadow: true }\n',
      )
      .concat('unmatched: deny\n');
    expect(formOf(others)).toBe(formOf(DOCUMENT));
  });

  it.each([
    ['key: ip', 'key: org'],
    ['/dear/*', '/dear/y'],
    ['named: true, ', ''],
    ['unlimited: true', 'windows: { limit: 3, per: minute }'],
    ['group: dear', 'group: dear, priority: 2'],
  ])('is another one with %s instead of %s', (before, after) => {
    expect(formOf(DOCUMENT.replace(before, after))).not.toBe(formOf(DOCUMENT));
  });

  it('finds the same keys as the rules themselves', () => {
    const whole = new RuleMatcher(rulesOf(DOCUMENT));
    const kept = new RuleMatcher(JSON.parse(formOf(DOCUMENT)) as readonly RuleDefinition[]);
    for (const said of [
      { user: 'ada' },
      { user: 'boss' },
      { user: 'ada', endpoint: '/dear/x', ip: '10.0.0.1' },
    ]) {
      const keysBy = (matcher: RuleMatcher): unknown => {
        const matching = matcher.match(new Map(Object.entries(said)));
        return matching.kind === 'rules' && matching.applied.map(({ rule, key }) => [rule.id, key]);
      };
      expect(keysBy(kept)).toEqual(keysBy(whole));
    }
  });
});
