/**
 * The version before this one, built from the history of the repository: what a cluster runs when its operators begin to upgrade it.
 * It is built once for each commit, and kept beside other temporary files.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CommandWrapper } from '../../cluster/processes.ts';

/** One that speaks no version above 13. When `VERSIONS` is raised, the last one before that takes its place. */
const COMMIT = '3db96d30a7081afc64b71a7e8b987c12409b2962';
/** The highest that it speaks. */
export const VERSION_BEFORE = 13;

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
/** Its tests and benches are not needed, and take most of the time. */
const PARTS = ['src', 'raft', 'storage', 'package.json', 'tsconfig.json'];
const MAIN = join('dist', 'src', 'cli', 'main.js');

/** Runs a node by that version. Undefined, with a word why: this is no clone with the history in it. */
export async function versionBefore(): Promise<CommandWrapper | undefined> {
  try {
    await run('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { cwd: ROOT });
  } catch {
    console.log(
      `skipped: the version before is built from commit ${COMMIT}, which is not in the history here`,
    );
    return undefined;
  }
  const main = join(await built(), MAIN);
  return (command) => command.map((part) => (part.endsWith(MAIN) ? main : part));
}

/** The directory with the compiled version. */
async function built(): Promise<string> {
  const parent = join(tmpdir(), `quorate-test-versions-${process.getuid?.() ?? 0}`);
  const directory = join(parent, COMMIT.slice(0, 12));
  if (existsSync(directory)) return directory;
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const fresh = await mkdtemp(join(parent, 'building-'));
  const archive = join(fresh, 'archive.tar');
  await run('git', ['archive', '--output', archive, COMMIT, ...PARTS], { cwd: ROOT });
  await run('tar', ['-xf', archive, '-C', fresh]);
  await rm(archive);
  await symlink(join(ROOT, 'node_modules'), join(fresh, 'node_modules'));
  await writeFile(
    join(fresh, 'tsconfig.build.json'),
    JSON.stringify({ extends: './tsconfig.json', include: ['src', 'raft', 'storage'] }),
  );
  await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    cwd: fresh,
  });
  try {
    await rename(fresh, directory);
  } catch (error) {
    // Another process was first.
    if (!existsSync(directory)) throw error;
    await rm(fresh, { recursive: true });
  }
  return directory;
}
