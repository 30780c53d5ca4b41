/**
 * Tests `unmatched` in a document: requests that no rule matches are let through, denied, or counted as shadow
 * denials.
 */
import { describe, expect, it } from 'vitest';
import { checkRules, textOfRules } from '../../src/dashboard/rules-text.ts';
import { readRuleOfDocument } from '../../src/node/rules-document.ts';
import { limiterRulesOf } from '../../src/rules/limiter-rules.ts';
import { diffRules } from '../../src/rules/diff.ts';
import { RuleMatcher } from '../../src/rules/match.ts';
import { ruleInWords } from '../../src/rules/words.ts';
import { rulesOf, reported } from './read.ts';

const RULES = 'rules:\n  - { id: user, key: user, windows: { limit: 2, per: minute } }\n';
const TIERS = 'rate_limits: { tiers: { free: { per_minute: 5 } } }\n';
const ENVOY =
  'domain: edge\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 10 } }]\n';

describe('unmatched at the top of a document', () => {
  it.each([
    ['a list of rules', RULES],
    ['limits by tier', TIERS],
    ['descriptors of Envoy', ENVOY],
  ])('is stored after the rules, and is no rule itself: %s', (_, document) => {
    const rules = rulesOf(document);
    const denying = rulesOf(`unmatched: deny\n${document}`);
    expect(denying.slice(0, -1)).toEqual(rules);
    expect(denying.at(-1)).toMatchObject({ id: 'unmatched', unmatched: true, shadow: false });
    expect(rulesOf(`unmatched: shadow\n${document}`).at(-1)).toEqual({ ...denying.at(-1), shadow: true });
    expect(rulesOf(`unmatched: allow\n${document}`)).toEqual(rules);
    expect(limiterRulesOf(denying)).toEqual(limiterRulesOf(rules));
  });

  it('is in shadow with the whole document', () => {
    expect(rulesOf(`shadow: true\nunmatched: deny\n${RULES}`).map(({ shadow }) => shadow)).toEqual([
      true,
      true,
    ]);
  });

  it('has one of three values, and no rule has its name', () => {
    expect(reported(`unmatched: denied\n${RULES}`)).toEqual([
      "1:12 unmatched must be one of allow, deny, shadow, but is 'denied'",
    ]);
    expect(reported(RULES.replace('id: user', 'id: unmatched'))).toEqual([
      "2:11 'unmatched' is reserved for requests that no rule matches; write unmatched: deny at the top of the document, or choose another id",
    ]);
    expect(
      reported(`unmatched: deny\n${RULES.replace('key: user', 'key: user, replaces: unmatched')}`),
    ).toHaveLength(1);
  });

  it('is shown, compared and edited like rules', () => {
    const before = rulesOf(RULES);
    const after = rulesOf(`unmatched: deny\n${RULES}`);
    expect(ruleInWords(after[1]!)).toBe('requests that no rule matches are denied');
    expect(diffRules(before, after)).toEqual([
      {
        kind: 'added',
        id: 'unmatched',
        words: 'unmatched is added: requests that no rule matches are denied',
      },
    ]);
    expect(diffRules(after, rulesOf(`unmatched: shadow\n${RULES}`))).toMatchObject([
      { kind: 'changed', id: 'unmatched', binds: 'looser', fields: [{ field: 'shadow' }] },
    ]);
    for (const word of ['deny', 'shadow']) {
      const inForce = rulesOf(`unmatched: ${word}\n${RULES}`);
      const text = textOfRules(inForce) ?? '';
      expect(text).toMatch(new RegExp(`^unmatched: ${word}\\n`));
      const same = { kind: 'changes', definitions: inForce, changes: [], notes: [] };
      expect(checkRules(text, inForce)).toEqual(same);
    }
  });

  it('is unchanged when one rule is changed, and can be removed', () => {
    const inForce = rulesOf(`unmatched: deny\n${RULES}`);
    const body = { key: 'ip', windows: { limit: 1, per: 'day' } };
    const added = readRuleOfDocument({ id: 'ip', body }, inForce);
    expect(JSON.parse('definitions' in added ? (added.definitions ?? '') : '')).toMatchObject([
      { id: 'user' },
      { id: 'unmatched', unmatched: true },
      { id: 'ip' },
    ]);
    expect(readRuleOfDocument({ id: 'unmatched', body }, inForce)).toMatchObject({ reason: 'invalid' });
    expect(readRuleOfDocument({ id: 'unmatched' }, inForce)).toMatchObject({
      definitions: JSON.stringify(rulesOf(RULES)),
    });
  });
});

describe('a request', () => {
  const RULE_SETS = `unmatched: deny
rules:
  - { id: user, key: user, windows: { limit: 2, per: minute } }
  - { id: shadowed, match: { tier: free }, key: ip, windows: { limit: 2, per: minute }, shadow: true }
  - { id: boss, match: { apiKey: boss }, unlimited: true }
  - { id: off, key: tenant, windows: { limit: 2, per: minute }, enabled: false }
`;
  it.each([
    [{ user: 'ada' }, true],
    [{ usr: 'ada' }, false],
    [{ user: '' }, false],
    [{ apiKey: 'boss' }, true],
    [{ tier: 'free', ip: '10.0.0.1' }, true],
    [{ tier: 'free' }, false],
    [{ tenant: 'acme' }, false],
  ])(
    '%j is matched if a rule applies to it, also a shadow or an unlimited one: %s',
    (descriptors, isMatched) => {
      const matching = new RuleMatcher(rulesOf(RULE_SETS)).match(new Map(Object.entries(descriptors)));
      expect(matching).toMatchObject({ kind: 'rules', isMatched });
    },
  );

  it('is matched by a shadow rule even if that has no key for it', () => {
    const long = { tier: 'free', ip: '10.0.0.1', user: '' };
    const rules = rulesOf('rules: [{ id: t, key: path, windows: { limit: 1, per: day }, shadow: true }]');
    const matching = new RuleMatcher(rules).match(new Map(Object.entries({ ...long, path: '\ud800' })));
    expect(matching).toEqual({ kind: 'rules', applied: [], isMatched: true });
  });
});
