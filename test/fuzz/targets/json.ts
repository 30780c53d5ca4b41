/** Damages the structure of a JSON document: replaces, removes, repeats or nests one value. */
import fc from 'fast-check';

const HOSTILE: readonly string[] = [
  'null',
  'true',
  '0',
  '-1',
  '-0',
  '1.5',
  '1e400',
  '9007199254740993',
  '""',
  '"\\u0000"',
  '"\\ud800"',
  '"__proto__"',
  '"constructor"',
  '[]',
  '[null]',
  '{}',
  '{"__proto__":{"id":1}}',
  '{"toString":1,"length":3}',
  `"${'x'.repeat(5_000)}"`,
  `${'['.repeat(500)}${']'.repeat(500)}`,
  `[${'1,'.repeat(500)}1]`,
];

/** Placeholder of the replaced value until the document is text. */
const HOLE = '\u0001hole\u0001';

export function nearJson(sound: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> {
  const damage = fc.oneof(fc.constantFrom(...HOSTILE), fc.json({ maxDepth: 2 }));
  return fc.tuple(sound, fc.nat(), damage).map(([value, place, put]) => {
    const text = JSON.stringify(value) ?? 'null';
    const plain: unknown = JSON.parse(text);
    const count = { left: place % countOf(plain) };
    return Buffer.from(JSON.stringify(holed(plain, count)).replace(JSON.stringify(HOLE), () => put));
  });
}

function countOf(value: unknown): number {
  return 1 + partsOf(value).reduce((sum, [, part]) => sum + countOf(part), 0);
}

function partsOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** The document with the placeholder as its n-th value. */
function holed(value: unknown, count: { left: number }): unknown {
  if (count.left === 0) {
    count.left -= 1;
    return HOLE;
  }
  count.left -= 1;
  const parts = partsOf(value).map(
    ([name, part]) => [name, count.left < 0 ? part : holed(part, count)] as const,
  );
  if (Array.isArray(value)) return parts.map(([, part]) => part);
  return typeof value === 'object' && value !== null ? Object.fromEntries(parts) : value;
}
