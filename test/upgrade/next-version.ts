/**
 * Makes a program of the next version, which differs from this one only in its version number. It also speaks this
 * version, so a cluster can be upgraded node by node.
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { CommandWrapper } from '../../cluster/processes.ts';
import { VERSIONS, type VersionRange } from '../../src/api/versions.ts';

/** Cluster versions that this program speaks. */
export const THIS: VersionRange = { ...VERSIONS };
export const NEXT: VersionRange = { min: THIS.min, max: THIS.max + 1 };

const ROOT = join(import.meta.dirname, '..', '..');
const MAIN = join('dist', 'src', 'cli', 'main.js');
const NUMBERS = join('dist', 'src', 'api', 'versions.js');

/** Makes this process a program of the next version for the calling suite. */
export function beNextVersion(): void {
  const own: { max: number } = VERSIONS;
  beforeAll(() => {
    own.max = NEXT.max;
  });
  afterAll(() => {
    own.max = THIS.max;
  });
}

/** Copies the compiled program with the next version number. */
export class NextVersion {
  readonly #directory: string;
  /** Runs a node of the next version. */
  readonly run: CommandWrapper;

  private constructor(directory: string) {
    this.#directory = directory;
    const main = join(directory, MAIN);
    this.run = (command) => command.map((part) => (part.endsWith(MAIN) ? main : part));
  }

  static async make(): Promise<NextVersion> {
    const directory = await mkdtemp(join(tmpdir(), 'quorate-next-version-'));
    for (const part of ['dist', 'package.json'])
      await cp(join(ROOT, part), join(directory, part), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    const path = join(directory, NUMBERS);
    const text = await readFile(path, 'utf8');
    const parts = text.split(`max: ${THIS.max} }`);
    if (parts.length !== 2) throw new Error(`${path} names the highest version ${parts.length - 1} times`);
    await writeFile(path, parts.join(`max: ${NEXT.max} }`));
    return new NextVersion(directory);
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
