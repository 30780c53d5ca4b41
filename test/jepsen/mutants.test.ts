/** A mutant that edits nothing finds nothing: every edit has its place in what is compiled (`npm run build`). */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { NODE_MUTANTS } from './mutants.ts';

const edits = NODE_MUTANTS.flatMap(({ id, bug, edits: all }) => all.map((edit) => ({ id, bug, edit })));

test.each(edits)('$id, $bug, has exactly one place to edit', async ({ edit }) => {
  const compiled = await readFile(new URL(`../../dist/${edit.module}`, import.meta.url), 'utf8');
  expect(compiled.split(edit.find)).toHaveLength(2);
});
