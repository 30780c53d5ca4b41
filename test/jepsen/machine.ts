/**
 * Checks whether this machine supports faults that need more than processes and sockets. A missing feature is reported
 * as a sentence.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, Volume } from './volume.ts';

const here = dirname(fileURLToPath(import.meta.url));
const root = here.includes(join('dist', 'test')) ? join(here, '..', '..', '..') : join(here, '..', '..');
const SOURCES = join(root, 'test', 'jepsen', 'native');
/** Compiled, because a node cannot import TypeScript. */
export const INSIDE = join(root, 'dist', 'test', 'jepsen', 'injected', 'inside.js');
export const ARCHIVE = join(root, 'dist', 'test', 'jepsen', 'injected', 'archive.js');
export const MUTANT = join(root, 'dist', 'test', 'jepsen', 'injected', 'mutant.js');

function remembered<T>(find: () => T): () => T {
  let found: { readonly value: T } | undefined;
  return () => (found ??= { value: find() }).value;
}

/** The reason why an action failed, or undefined if it worked. */
function attempt(action: (directory: string) => void): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'quorate-machine-'));
  try {
    action(directory);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const notRoot = (): string | undefined => (process.getuid?.() === 0 ? undefined : 'needs root');

/** Compiles one of our C files. */
export function compile(name: 'sync-fault' | 'power-cut', output: string): void {
  const shared = name === 'sync-fault' ? ['-shared', '-fPIC', '-ldl'] : [];
  run('gcc', '-O1', '-Wall', '-o', output, join(SOURCES, `${name}.c`), ...shared);
}

const compilerLack = remembered(() =>
  process.platform === 'linux'
    ? attempt((directory) => compile('sync-fault', join(directory, 'sync-fault.so')))
    : 'needs Linux',
);

/** For each feature: why this machine lacks it, or undefined if it has it. */
export const lacks = {
  compiler: compilerLack,
  tmpfs: remembered(
    () => notRoot() ?? attempt((directory) => Volume.tmpfs(join(directory, 'mount'), 1 << 20).remove()),
  ),
  ext4: remembered(
    () =>
      notRoot() ??
      compilerLack() ??
      attempt((directory) => Volume.ext4(join(directory, 'mount'), 8 << 20).remove()),
  ),
};

/** The libfaketime library for programs with threads, if it is installed. */
export const libfaketime = remembered((): string | undefined => {
  const folders = existsSync('/usr/lib') ? readdirSync('/usr/lib').map((name) => join('/usr/lib', name)) : [];
  return [...folders, '/usr/lib', '/usr/local/lib']
    .map((folder) => join(folder, 'faketime', 'libfaketimeMT.so.1'))
    .find((path) => existsSync(path));
});
