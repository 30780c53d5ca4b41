/** A mutant that edits nothing finds nothing: every edit has its place in the sources. */
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

test('every mutant is a program: what it makes of a module compiles, and names only fields that are there', async () => {
  const broken: string[] = [];
  for (const { id, edits = [] } of MUTANTS) {
    for (const code of (await compiled(sources.edited(edits))).values()) {
      try {
        // A script has no imports and exports; the rest of a module is one.
        void new Script(code.replaceAll(/^(import\b|export [{*])[^;]*;/gm, '').replaceAll(/^export /gm, ''));
      } catch (error) {
        broken.push(`${id}: ${String(error)}`);
      }
    }
  }
  expect(broken).toEqual([]);
});

test('mutants differ by id, change something, and name tests that are there', () => {
  expect(new Set(MUTANTS.map(({ id }) => id)).size).toBe(MUTANTS.length);
  const idle = MUTANTS.filter(({ edits = [], seams }) => edits.length === 0 && seams === undefined);
  expect(idle.map(({ id }) => id)).toEqual([]);
  const tests = MUTANTS.flatMap(({ unitTest }) => (unitTest === undefined ? [] : [`test/${unitTest.file}`]));
  expect(tests.filter((file) => !existsSync(file))).toEqual([]);
});

test('a place is found whatever file it is in and however it is laid out, and nothing else is taken for it', () => {
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

test('what the table remembers is read back', () => {
  const row = { id: 'M1', bug: 'a bug', caughtBy: 'over-grant', seed: 7 };
  const other = { ...row, id: 'X12b', seed: undefined };
  expect([...rowsOf(markdownOf(new Map([['clock', [row, other]]]))).values()]).toEqual([row, other]);
});
