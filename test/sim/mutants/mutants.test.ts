/** A mutant whose edit has no place in the sources would test nothing, so every edit must have one. */
import { existsSync } from 'node:fs';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { NODE_MUTANTS } from '../../jepsen/mutants.ts';
import { MUTANTS } from './all.ts';
import { compiled, Sources } from './places.ts';
import { markdownOf, rowsOf } from './table.ts';

const sources = Sources.read();

test('every edit of a mutant has exactly one place in the product', () => {
  const lost = [...MUTANTS, ...NODE_MUTANTS].flatMap(({ id, edits = [] }) =>
    edits.flatMap((edit) => {
      try {
        sources.locate(edit);
        return [];
      } catch (error) {
        return [`${id}: ${String(error)}`];
      }
    }),
  );
  expect(lost).toEqual([]);
});

test('every mutated module compiles, and names only private fields that exist', async () => {
  const broken: string[] = [];
  for (const { id, edits = [] } of MUTANTS) {
    for (const code of (await compiled(sources.edited(edits))).values()) {
      try {
        // A script must not have imports and exports, so they are removed; the rest of a module is a script.
        void new Script(code.replaceAll(/^(import\b|export [{*])[^;]*;/gm, '').replaceAll(/^export /gm, ''));
      } catch (error) {
        broken.push(`${id}: ${String(error)}`);
      }
    }
  }
  expect(broken).toEqual([]);
});

test('each mutant has an id of its own, changes something, and names a test that exists', () => {
  expect(new Set(MUTANTS.map(({ id }) => id)).size).toBe(MUTANTS.length);
  const idle = MUTANTS.filter(({ edits = [], seams }) => edits.length === 0 && seams === undefined);
  expect(idle.map(({ id }) => id)).toEqual([]);
  const tests = MUTANTS.flatMap(({ unitTest }) => (unitTest === undefined ? [] : [`test/${unitTest.file}`]));
  expect(tests.filter((file) => !existsSync(file))).toEqual([]);
});

test('a place is found in any file and any layout, and nothing else is taken for it', () => {
  const some = new Sources();
  some.add(
    'a.ts',
    'class A { #b(c: number): number { /* c + 1 */ return c +\n 1; } d(): number { return c + 1; } }',
  );
  some.add('b.ts', 'export function f(): number { return 2; } // return 2;');
  some.add('c.ts', 'export const LIMIT = 3; export function twice(): number { return LIMIT + LIMIT; }');
  const edited = (where: string, find: string): string =>
    [...some.edited([{ in: where, find, replace: 'X' }]).values()].join('');
  expect(edited('A.#b', 'return c + 1;')).toContain('/* c + 1 */ X } d(): number { return c + 1; }');
  expect(edited('f', 'return 2;')).toBe('export function f(): number { X } // return 2;');
  expect(edited('LIMIT', '3')).toContain('LIMIT = X;');
  expect(() => edited('A.#gone', 'c')).toThrow('there is no A.#gone');
  expect(() => edited('f', 'return 3;')).toThrow('0 places');
  expect(() => edited('twice', 'LIMIT')).toThrow('2 places');
});

test('the rows of the table can be read back', () => {
  const row = { id: 'M1', bug: 'a bug', caughtBy: 'over-grant', seed: 7 };
  const other = { ...row, id: 'X12b', seed: undefined };
  expect([...rowsOf(markdownOf(new Map([['clock', [row, other]]]))).values()]).toEqual([row, other]);
});
