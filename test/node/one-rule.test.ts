/** Tests changes of a single rule: replaced, added or removed, while the others stay unchanged. */
import { describe, expect, it } from 'vitest';
import type { Rule } from '../../src/api/rule.ts';
import { readRuleOfDocument, readRuleOfTable } from '../../src/node/rules-document.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import type { RuleDefinition } from '../../src/rules/rule-definition.ts';

function definitionsOf(rules: readonly object[]): readonly RuleDefinition[] {
  const read = readRules(JSON.stringify({ rules }));
  if (read.kind !== 'rules') throw new Error(read.mistakes.map(({ message }) => message).join());
  return read.definitions;
}

const perDay = (limit: number): object => ({ key: 'user', windows: { limit, per: 'day' } });
const [FIRST, SECOND, THIRD] = [
  { id: 'a', ...perDay(1) },
  { id: 'b', ...perDay(2), group: 'g', replaces: ['a'] },
  { id: 'c', unlimited: true, key: 'ip' },
];
const IN_FORCE = definitionsOf([FIRST, SECOND, THIRD]);

describe('a rule of a document', () => {
  it('is replaced at its position', () => {
    const definitions = definitionsOf([FIRST, { ...SECOND, ...perDay(9) }, THIRD]);
    const { id, ...body } = { ...SECOND, ...perDay(9) };
    expect(readRuleOfDocument({ id, body }, IN_FORCE)).toMatchObject({
      definitions: JSON.stringify(definitions),
      rules: [
        { id: 'a/day', limit: 1 },
        { id: 'b/day', limit: 9 },
      ],
    });
  });

  it('is added after the others', () => {
    const read = readRuleOfDocument({ id: 'd', body: { ...perDay(4) } }, IN_FORCE);
    const definitions = definitionsOf([FIRST, SECOND, THIRD, { id: 'd', ...perDay(4) }]);
    expect(read).toMatchObject({ definitions: JSON.stringify(definitions) });
  });

  it('is removed, unless another one replaces it', () => {
    expect(readRuleOfDocument({ id: 'b' }, IN_FORCE)).toMatchObject({
      definitions: JSON.stringify(definitionsOf([FIRST, THIRD])),
      rules: [{ id: 'a/day' }],
    });
    const message = "rule 'b' replaces it";
    expect(readRuleOfDocument({ id: 'a' }, IN_FORCE)).toMatchObject({ field: 'id', message });
    expect(readRuleOfDocument({ id: 'x' }, IN_FORCE)).toEqual({ ok: false, reason: 'unknownRule' });
  });

  it.each([
    [{ windows: { limit: -1, per: 'day' } }, 'limit must be an integer from 0 to'],
    [{ ...perDay(1), colour: 'red' }, 'colour'],
    [{ ...perDay(1), replaces: ['nobody'] }, 'no rule is called'],
    [{ ...perDay(1), replaces: ['b'] }, 'in a circle'],
  ])('with a mistake changes nothing: %j', (body, message) => {
    const read = readRuleOfDocument({ id: 'a', body }, IN_FORCE);
    expect(read).toMatchObject({ ok: false, reason: 'invalid', field: 'rule' });
    expect(read).toHaveProperty('message', expect.stringContaining(message));
  });
});

describe('a rule of a table', () => {
  const table = [
    { id: 'a', limit: 1 },
    { id: 'b', limit: 2 },
  ] as Rule[];

  it('is replaced, added, or removed', () => {
    const body = { limit: 5 };
    expect(readRuleOfTable({ id: 'a', body }, table)).toEqual({ rules: [{ id: 'a', limit: 5 }, table[1]] });
    expect(readRuleOfTable({ id: 'c', body }, table)).toEqual({ rules: [...table, { id: 'c', limit: 5 }] });
    expect(readRuleOfTable({ id: 'a' }, table)).toEqual({ rules: [table[1]] });
    expect(readRuleOfTable({ id: 'c' }, table)).toEqual({ ok: false, reason: 'unknownRule' });
  });
});
