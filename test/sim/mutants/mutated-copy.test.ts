/** A copy of the program has the code of one mutant at a time, and is removed at the end. */
import { access, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type * as Copies from './mutated-copy.ts';

const DIST = join(import.meta.dirname, '..', '..', '..', 'dist');
/** The compiled module, because it copies the program that it is a part of. */
const COMPILED = pathToFileURL(join(DIST, 'test', 'sim', 'mutants', 'mutated-copy.js')).href;

describe('a copy of the program', () => {
  it('has the changed modules, has all others unchanged, and can be removed', async () => {
    const { MutatedCopy } = (await import(COMPILED)) as typeof Copies;
    const copy = await MutatedCopy.make();
    const root = join(dirname(copy.child), '..', '..', '..');
    const isAsInProgram = async (path: string): Promise<boolean> =>
      (await readFile(join(root, path), 'utf8')) === (await readFile(join(DIST, path), 'utf8'));
    const code = 'export const isMutant = true;\n';
    try {
      await access(copy.child);
      await access(join(root, 'node_modules', 'level'));
      await copy.change(new Map([['raft/quorum.js', code]]));
      expect(await readFile(join(root, 'raft/quorum.js'), 'utf8')).toBe(code);
      expect(await isAsInProgram('raft/log.js')).toBe(true);
      await copy.change(new Map([['raft/log.js', code]]));
      expect(await readFile(join(root, 'raft/log.js'), 'utf8')).toBe(code);
      expect(await isAsInProgram('raft/quorum.js')).toBe(true);
    } finally {
      await copy.remove();
    }
    await expect(access(root)).rejects.toThrow('ENOENT');
  });
});
