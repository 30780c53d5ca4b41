/**
 * A copy of the compiled program with other code in the place of some modules, to be run by a process of its own. Hooks of the
 * module loader would do without a copy, and cost each process as much as a seed. A copy costs as much again: one serves many mutants.
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
  /** Modules that are not what they are in the program. */
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
   * All other modules are those of the program again.
   *
   * @param modules their code by path below `dist`, like `raft/log.js`
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
