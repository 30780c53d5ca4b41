/** Repeated keys in a JSON text, checked against texts that were generated with and without them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonPath, pathText, repeatedKeysIn } from '../../src/api/repeated-keys.ts';

function repeatedIn(text: string): readonly JsonPath[] {
  return repeatedKeysIn(text, JSON.parse(text));
}

describe('a key that an object of a JSON text has twice', () => {
  it.each([
    ['{"a":1,"a":1}', 'a'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"\\u0061":1,"a":2}', 'a'],
    ['{"\\/":1,"/":2}', '/'],
    ['{"":1,"":2}', ''],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"toString":1,"toString":2}', 'toString'],
    ['{"a:b":1,"a:b":2}', 'a:b'],
    ['{"a\\"b":1,"a\\"b":2}', 'a"b'],
    ['{"a":"x:y","a":"x"}', 'a'],
    ['{"b":{"a":1,"a":2},"c":"::"}', 'b.a'],
    ['[0,{"b":[{},{"a":1, "a" :2}]}]', '[1].b[1].a'],
    ['{"descriptors":{"user":"ada","user":"bob"}}', 'descriptors.user'],
    ['{"a":{"x":1},"a":{"y":1}}', 'a'],
  ])('is named by its path: %s', (text, path) => {
    expect(repeatedIn(text).map(pathText)).toEqual([path]);
  });

  it.each([
    '{}',
    '[]',
    'null',
    '"a:a:a"',
    '{"a":1,"A":2}',
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":1}]',
    '{"a":"\\"a\\":1,\\"a\\":2"}',
    '{"a":":{,}[]","b":"\\\\"}',
    '{"1":1,"01":2,"1.0":3}',
  ])('is not found if there is none: %s', (text) => {
    expect(repeatedIn(text)).toEqual([]);
  });

  it('is found in very deep and very large texts', () => {
    const deep = 100_000;
    expect(repeatedIn('['.repeat(deep) + ']'.repeat(deep))).toEqual([]);
    expect(repeatedIn(`${'['.repeat(deep)}{"a":1,"a":2}${']'.repeat(deep)}`)).toHaveLength(1);
    expect(repeatedIn(`{"a":"${'\\u0061'.repeat(deep)}","a":"${'x'.repeat(deep)}"}`).map(pathText)).toEqual([
      'a',
    ]);
  });

  it('is found in any text, without false reports', () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const member = fc.tuple(fc.oneof(fc.constantFrom('a', ':', '"', '__proto__'), fc.string()), value);
    fc.assert(
      fc.property(fc.array(member, { maxLength: 6 }), fc.boolean(), (members, isEscaped) => {
        const escaped = (key: string): string =>
          isEscaped
            ? `"${[...Array(key.length).keys()].map((i) => `\\u${key.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
            : JSON.stringify(key);
        const text = `[${JSON.stringify(members)},{${members.map(([key, each]) => `${escaped(key)}:${JSON.stringify(each)}`).join(',')}}]`;
        const keys = members.map(([key]) => key);
        const expected = keys.filter((key, i) => keys.indexOf(key) < i).map((key) => [1, key]);
        expect(repeatedIn(text)).toEqual(expected);
      }),
    );
  });
});
