/** Tests the text of the rules in force, and the check of an edited text. */
import { describe, expect, it } from 'vitest';
import { checkRules, indexOfPlace, textInForce, textOfRules } from '../../src/dashboard/rules-text.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';

const DOCUMENT = `
rules:
  - { id: free, match: { tier: free }, key: customer, group: tier, windows: [{ limit: 5, per: minute }, { limit: 50, per: day }] }
  - { id: odd, key: [ip, user], windows: { limit: 7, windowMillis: 1234 }, meter: tokenBucket, burst: 9, shadow: true }
  - { id: dear, key: user, windows: { limit: 100, per: hour }, cost: { '/search': 5, '*': 1 }, comment: 'it: costs' }
  - { id: staff, match: { tier: staff }, key: customer, group: tier, unlimited: true }
`;

function definitionsOf(text: string): readonly RuleDefinition[] {
  const read = readRules(text);
  if (read.kind === 'mistakes') throw new Error(JSON.stringify(read.mistakes));
  return read.definitions;
}

describe('rules as text', () => {
  it('are the same rules when the text is read again', () => {
    const inForce = definitionsOf(DOCUMENT);
    const text = textOfRules(inForce) ?? '';
    expect(definitionsOf(text)).toEqual(inForce);
    const same = { kind: 'changes', definitions: inForce, changes: [], notes: [] };
    expect(checkRules(text, inForce)).toEqual(same);
    expect(text).toContain('per: minute');
  });

  it('are the text of their author, with comments and blank lines, if it is stored', () => {
    const document = `# ours\r\n${DOCUMENT}`;
    expect(textInForce({ document, definitions: definitionsOf(DOCUMENT) })).toEqual({
      text: `# ours\n${DOCUMENT}`,
      origin: 'author',
    });
    expect(textInForce({ definitions: definitionsOf(DOCUMENT) }).origin).toBe('written');
    expect(textInForce({}).origin).toBe('example');
  });

  it('are a valid example if no document is in force', () => {
    expect(checkRules(textOfRules(undefined) ?? '', undefined)).toMatchObject({
      kind: 'changes',
      changes: [{ kind: 'added', id: 'per-user' }],
    });
  });

  it('omit rules of nested descriptors', () => {
    const nested = definitionsOf(
      'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: minute, requests_per_unit: 1 } }]',
    );
    expect(textOfRules(nested)).toBeUndefined();
  });

  it('are compared with those in force, field by field', () => {
    const inForce = definitionsOf(DOCUMENT);
    const checked = checkRules(DOCUMENT.replace('limit: 100', 'limit: 80'), inForce);
    expect(checked).toMatchObject({
      kind: 'changes',
      changes: [{ kind: 'changed', id: 'dear', binds: 'tighter', fields: [{ field: 'limit per hour' }] }],
    });
  });

  it('are refused with the position of every mistake', () => {
    const text = 'rules:\n  - { id: a, key: user, windows: { limit: -1, per: minute } }\n  - { key: user }\n';
    const checked = checkRules(text, undefined);
    if (checked.kind !== 'mistakes') throw new Error('it was taken');
    expect(checked.mistakes.map(({ line }) => line)).toContain(3);
    const [first] = checked.mistakes;
    expect(text.slice(indexOfPlace(text, first ?? { line: 1, column: 1 }))).toMatch(/^-1/);
  });

  it('are refused if they are longer than a cluster takes', () => {
    expect(checkRules(`rules: []\n#${'x'.repeat(262_144)}`, undefined)).toMatchObject({
      kind: 'mistakes',
      mistakes: [{ message: expect.stringContaining('262144') }],
    });
  });
});
