/**
 * A copy of the compiled program in which some modules are replaced, to be run by a process of its own. Hooks of the
 * module loader would need no copy, but they cost each process as much as a seed. A copy costs as much, but one copy
 * serves many mutants.
 */
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const DIST = join(ROOT, 'dist');
const FOLDERS = ['raft', 'src', 'storage', 'test'];
const CHILD = ['test', 'sim', 'mutants', 'child.js'];

function isNeeded(path: string): boolean {
  return !path.endsWith('.d.ts') && !path.endsWith('.map');
}

export class MutatedCopy {
  readonly #directory: string;
  /** The modules that differ from the program now. */
  #changed: readonly string[] = [];

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async make(): Promise<MutatedCopy> {
    const copy = new MutatedCopy(await mkdtemp(join(tmpdir(), 'quorate-mutant-')));
    for (const folder of FOLDERS)
      await cp(join(DIST, folder), copy.#path(folder), { recursive: true, filter: isNeeded });
    await cp(join(ROOT, 'package.json'), copy.#path('package.json'));
    await symlink(join(ROOT, 'node_modules'), copy.#path('node_modules'));
    return copy;
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  /**
   * Replaces these modules, and restores all others that were replaced before.
   *
   * @param modules the code of each by its path below `dist`, like `raft/log.js`
   */
  async change(modules: ReadonlyMap<string, string>): Promise<void> {
    for (const path of this.#changed) await cp(join(DIST, path), this.#path(path));
    this.#changed = [...modules.keys()];
    for (const [path, code] of modules) await writeFile(this.#path(path), code);
  }

  /** The program that runs one mutant. */
  get child(): string {
    return join(this.#directory, ...CHILD);
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
