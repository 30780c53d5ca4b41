/** SCENARIOS.md names the tests that show each scenario. This compares it with the titles of all tests. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
const SCENARIOS = 120;

/** By scenario: the files with a test, or a suite, whose title begins with its number. */
function claims(): Map<number, string[]> {
  const found = new Map<number, string[]>();
  const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  for (const file of files.map((name) => name.replaceAll('\\', '/')).toSorted()) {
    const titles = readFileSync(join(TESTS, file), 'utf8').matchAll(/(?:\(|^\s*)['"`]((?:\d+, )*\d+): /gm);
    const numbers = new Set([...titles].flatMap(([, list = '']) => list.split(', ').map(Number)));
    for (const number of numbers) found.set(number, [...(found.get(number) ?? []), file]);
  }
  return found;
}

const CLAIMS = claims();

interface Row {
  readonly number: number;
  readonly isRequired: boolean;
  readonly files: readonly string[];
  readonly reason: string | undefined;
}

function rows(): Row[] {
  const text = readFileSync(join(import.meta.dirname, 'SCENARIOS.md'), 'utf8');
  return [...text.matchAll(/^- (\**)(\d+)\** [^:]+:(.*(?:\n {2}.*)*)$/gm)].map(
    ([, stars = '', number = '', where = '']) => ({
      number: Number(number),
      isRequired: stars !== '',
      files: [...where.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
      reason: /^\s*does not apply: (.+)/.exec(where)?.[1],
    }),
  );
}

test('every scenario is in the list, in order', () => {
  expect(rows().map(({ number }) => number)).toEqual(Array.from({ length: SCENARIOS }, (_, i) => i + 1));
});

test('every scenario that must be shown is', () => {
  const required = rows().filter(({ isRequired }) => isRequired);
  expect(required.length).toBeGreaterThan(50);
  expect(required.filter(({ number }) => !CLAIMS.has(number))).toEqual([]);
});

test.each(rows())('scenario $number is shown where the list says, or the list says why not', (row) => {
  expect(CLAIMS.get(row.number) ?? []).toEqual(expect.arrayContaining([...row.files]));
  expect(row.reason === undefined).toBe(row.files.length > 0);
});

test('every number at the start of a title is a scenario of the list', () => {
  expect([...CLAIMS.keys()].filter((number) => number < 1 || number > SCENARIOS)).toEqual([]);
});
