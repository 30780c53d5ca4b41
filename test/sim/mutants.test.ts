/** A mutant that edits nothing finds nothing: every edit has its place in what is compiled (`npm run build`). */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { MUTANTS } from './mutants.ts';

const edits = MUTANTS.flatMap(({ id, bug, edit, also = [] }) =>
  (edit === undefined ? [] : [edit, ...also]).map((each) => ({ id, bug, edit: each })),
);

test.each(edits)('$id, $bug, has exactly one place to edit', async ({ edit }) => {
  const compiled = await readFile(new URL(`../../dist/${edit.module}`, import.meta.url), 'utf8');
  expect(compiled.split(edit.find)).toHaveLength(2);
});
