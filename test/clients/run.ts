/** Installs and builds the program of one client, and runs it. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Program } from './programs.ts';

const run = promisify(execFile);
export const RUN_MILLIS_MAX = 60_000;
const BUILD_MILLIS_MAX = 300_000;
const INSTALL_MILLIS_MAX = 900_000;

/** Result of one client. Either it was skipped, or each check has a word: `ok`, or what happened instead. */
export interface Findings {
  readonly name: string;
  readonly version: string;
  readonly skipped?: string;
  readonly checks: ReadonlyMap<string, string>;
}

/** Checks one client. @param port of a node @param mayInstall install missing packages */
export async function checked(program: Program, port: number, mayInstall: boolean): Promise<Findings> {
  return checkedBy(program, mayInstall, async (output) => {
    await built(program, output);
    const [file, ...values] = program.run(output);
    const prefix = `${program.name}-`;
    const { stdout } = await run(file, [...values, String(port), prefix], { timeout: RUN_MILLIS_MAX });
    return checksIn(stdout);
  });
}

/**
 * Finds or installs the packages, and runs the checks.
 *
 * @param check builds and runs the program; `output` is in its own directory
 */
export async function checkedBy(
  { name, packages }: Pick<Program, 'name' | 'packages'>,
  mayInstall: boolean,
  check: (output: string) => Promise<ReadonlyMap<string, string>>,
): Promise<Findings> {
  const missing = await missingOf(packages);
  const skipped = missing.length === 0 ? undefined : await installed(missing, mayInstall);
  if (skipped !== undefined) return { name, version: '', skipped, checks: new Map() };
  const version = await versionOf(packages.at(-1) ?? name);
  const directory = await mkdtemp(join(tmpdir(), 'quorate-client-'));
  try {
    return { name, version, checks: await check(join(directory, 'program')).catch(whereItFailed) };
  } finally {
    await rm(directory, { recursive: true });
  }
}

export async function built({ build, env }: Pick<Program, 'build' | 'env'>, output: string): Promise<void> {
  if (build === undefined) return;
  const [compiler, ...values] = build(output);
  await run(compiler, values, { timeout: BUILD_MILLIS_MAX, env: { ...process.env, ...env } });
}

function whereItFailed(error: unknown): ReadonlyMap<string, string> {
  const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string };
  return new Map([...checksIn(stdout), ['run', lastLineOf(stderr) ?? String(error)]]);
}

/** Parses lines of a check, a tab and a word. */
export function checksIn(stdout: string): ReadonlyMap<string, string> {
  const lines = stdout.split('\n').filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const [check = '', ...words] = line.split('\t');
      return [check, words.join(' ')];
    }),
  );
}

function lastLineOf(text: string): string | undefined {
  return text.trim().split('\n').at(-1) || undefined;
}

async function missingOf(packages: readonly string[]): Promise<readonly string[]> {
  const versions = await Promise.all(packages.map(versionOf));
  return packages.filter((_, i) => versions[i] === '');
}

/** Version of a Debian package; empty if unknown or not installed. */
async function versionOf(name: string): Promise<string> {
  try {
    const { stdout } = await run('dpkg-query', ['-W', '-f', '${db:Status-Abbrev}${Version}', name]);
    return stdout.startsWith('ii ') ? stdout.slice('ii '.length) : '';
  } catch {
    return '';
  }
}

/** Installs packages. Returns why that failed, or undefined. */
async function installed(packages: readonly string[], mayInstall: boolean): Promise<string | undefined> {
  const names = packages.join(' ');
  if (!mayInstall) return `${names} not installed`;
  if (process.getuid?.() !== 0) return `${names} not installed, and only root may install them`;
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await run('apt-get', ['update', '-q'], { timeout: INSTALL_MILLIS_MAX, env });
    await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...packages], {
      timeout: INSTALL_MILLIS_MAX,
      env,
    });
    return undefined;
  } catch (error) {
    const { stderr = '' } = error as { readonly stderr?: string };
    return `apt-get cannot install ${names}: ${lastLineOf(stderr) ?? String(error)}`;
  }
}
