/** Tests `shadow: true` at the top of a document, which puts all its rules in shadow. */
import { describe, expect, it } from 'vitest';
import { textOfRules } from '../../src/dashboard/rules-text.ts';
import { diffRules } from '../../src/rules/diff.ts';
import { ruleInWords } from '../../src/rules/words.ts';
import { Bench, ruleSetOf, decision } from '../matching/bench.ts';
import { rulesOf, reported } from './read.ts';

const RULES = `rules:
  - { id: user, key: user, windows: { limit: 2, per: minute } }
  - { id: shadowed, key: ip, windows: { limit: 1, per: minute }, shadow: true }
`;
const TIERS = 'rate_limits: { default: { per_day: 9 }, tiers: { free: { per_minute: 5 } } }\n';
const ENVOY = `domain: edge
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 10 }
    descriptors: [{ key: path, rate_limit: { unit: hour, requests_per_unit: 2 } }]
`;

describe('a document in shadow', () => {
  it.each([
    ['a list of rules', RULES, 'shadow: true\n'],
    ['limits by tier', TIERS, 'shadow: true\n'],
    ['descriptors of Envoy', ENVOY, 'shadow_mode: true\n'],
  ])('has all its rules in shadow, and changes nothing else about them: %s', (_, document, word) => {
    const plain = rulesOf(document);
    expect(rulesOf(word + document)).toEqual(plain.map((rule) => ({ ...rule, shadow: true })));
    expect(rulesOf(word.replace('true', 'false') + document)).toEqual(plain);
  });

  it('contains no rule with shadow: false, which would deny nothing either', () => {
    const text = RULES.replace('shadow: true', 'shadow: false');
    expect(reported(`shadow: true\n${text}`)).toEqual([
      '4:66 shadow: true at the top of the document applies to all its rules',
    ]);
    expect(reported(`shadow: false\n${text}`)).toEqual([]);
    expect(reported(`shadow: yes\n${RULES}`)).toEqual(["1:9 shadow must be true or false, but is 'yes'"]);
  });

  it('appears with each rule when rules are shown, compared or edited', () => {
    const before = rulesOf(RULES);
    const after = rulesOf(`shadow: true\n${RULES}`);
    expect(after.map(ruleInWords)).toEqual([
      '2 per minute by user (in shadow)',
      '1 per minute by ip (in shadow)',
    ]);
    const fields = [{ field: 'shadow', before: 'no', after: 'yes', binds: 'looser' }];
    expect(diffRules(before, after)).toEqual([
      { kind: 'changed', id: 'user', words: 'user becomes looser', binds: 'looser', fields },
    ]);
    expect(rulesOf(textOfRules(after) ?? '')).toEqual(after);
  });

  it('lets requests through that its rules would deny, and counts them', () => {
    const bench = new Bench();
    bench.ruleSet = ruleSetOf(7, `shadow: true\n${RULES}`);
    bench.ask({ user: 'ada' });
    bench.asked[0]?.answer(decision({ allowed: false, ruleId: 'user/minute' }));
    expect(bench.reported).toMatchObject([{ answer: { kind: 'unlimited' } }]);
    expect(bench.tried).toEqual([{ ruleId: 'user/minute', wouldAllow: false }]);
  });
});
