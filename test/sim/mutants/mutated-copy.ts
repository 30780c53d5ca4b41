/**
 * A copy of the compiled program with other code in the place of some modules, to be run by a process of its own. Hooks of the
 * module loader would do without a copy, and cost each process as much as a seed.
 */
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const FOLDERS = ['raft', 'src', 'storage', 'test'];
const CHILD = ['test', 'sim', 'mutants', 'child.js'];

function isNeeded(path: string): boolean {
  return !path.endsWith('.d.ts') && !path.endsWith('.map');
}

export class MutatedCopy {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** @param modules by path below `dist`, like `raft/log.js` */
  static async make(modules: ReadonlyMap<string, string>): Promise<MutatedCopy> {
    const copy = new MutatedCopy(await mkdtemp(join(tmpdir(), 'quorate-mutant-')));
    const into = (path: string): string => join(copy.#directory, path);
    for (const folder of FOLDERS) {
      await cp(join(ROOT, 'dist', folder), into(folder), { recursive: true, filter: isNeeded });
    }
    await cp(join(ROOT, 'package.json'), into('package.json'));
    await symlink(join(ROOT, 'node_modules'), into('node_modules'));
    for (const [path, code] of modules) await writeFile(into(path), code);
    return copy;
  }

  /** The program that runs one mutant. */
  get child(): string {
    return join(this.#directory, ...CHILD);
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
