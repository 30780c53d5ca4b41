/** A copy of the program with other code in it: what runs there is the mutant, and nothing is left of it. */
import { access, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type * as Copies from './mutated-copy.ts';

const DIST = join(import.meta.dirname, '..', '..', '..', 'dist');
/** It copies what it belongs to: the compiled program. */
const COMPILED = pathToFileURL(join(DIST, 'test', 'sim', 'mutants', 'mutated-copy.js')).href;

describe('a copy of the program', () => {
  it('has the changed module, all others as they are, and is gone when it is removed', async () => {
    const { MutatedCopy } = (await import(COMPILED)) as typeof Copies;
    const copy = await MutatedCopy.make(new Map([['raft/quorum.js', 'export const isMutant = true;\n']]));
    const root = join(dirname(copy.child), '..', '..', '..');
    try {
      await access(copy.child);
      expect(await readFile(join(root, 'raft', 'quorum.js'), 'utf8')).toBe('export const isMutant = true;\n');
      const log = await readFile(join(root, 'raft', 'log.js'), 'utf8');
      expect(log).toBe(await readFile(join(DIST, 'raft', 'log.js'), 'utf8'));
      await access(join(root, 'node_modules', 'level'));
    } finally {
      await copy.remove();
    }
    await expect(access(root)).rejects.toThrow('ENOENT');
  });
});
