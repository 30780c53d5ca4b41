/** Runs commands to their end, in a directory of their own: compiled ones as processes, or `quorate` in this one. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { vi } from 'vitest';
import { failureOf } from '../../src/cli/command-line.ts';
import { quorateProgram } from '../../src/cli/program.ts';
import { EXIT_TEMPORARY, EXIT_UNAVAILABLE } from '../../src/cli/explain-error.ts';
import { eventually, WAIT_MILLIS_MAX } from '../cluster/harness.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
const COMMANDS = {
  quorate: join(ROOT, 'dist', 'src', 'cli', 'main.js'),
  start: join(ROOT, 'dist', 'cluster', 'start.js'),
} as const;

export interface Ended {
  readonly code: number;
  /** What it complained of. */
  readonly said: string;
  readonly stdout: string;
}

/** What a command that ends by itself leaves on the terminal. */
export async function ended(
  command: keyof typeof COMMANDS,
  args: readonly string[],
  cwd: string,
  stdin = '',
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [COMMANDS[command], ...args],
      { cwd, timeout: WAIT_MILLIS_MAX },
      (_error, stdout, stderr) => {
        resolve(saidBy(child.exitCode ?? -1, stdout, stderr));
      },
    );
    // One that reads nothing may have ended.
    child.stdin?.on('error', () => {}).end(stdin);
  });
}

function saidBy(code: number, stdout: string, stderr: string): Ended {
  const complaints = stderr.split('\n').filter((line) => line.startsWith('quorate: '));
  return { code, said: complaints.at(-1) ?? stderr, stdout };
}

/** Takes what is written, and says that there is room for more. */
function into(lines: string[], end: string): (text: unknown) => boolean {
  return (text) => lines.push(`${String(text)}${end}`) > 0;
}

/**
 * `quorate` in this process, one at a time: all but how a process begins and ends, for a tenth of the time. Not for commands
 * that run a node, or take a file with a token: that is of a process for good.
 */
export async function ran(args: readonly string[], cwd: string, stdin = ''): Promise<Ended> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const spies = [
    vi.spyOn(console, 'log').mockImplementation(into(stdout, '\n')),
    vi.spyOn(console, 'error').mockImplementation(into(stderr, '\n')),
    vi.spyOn(process.stdout, 'write').mockImplementation(into(stdout, '')),
    vi.spyOn(process.stderr, 'write').mockImplementation(into(stderr, '')),
    vi
      .spyOn(process, 'stdin', 'get')
      .mockReturnValue(Readable.from([Buffer.from(stdin)]) as typeof process.stdin),
  ];
  const before = { directory: process.cwd(), exitCode: process.exitCode };
  process.chdir(cwd);
  process.exitCode = 0;
  try {
    const failure = await failureOf(quorateProgram('0.0.0'), args);
    return saidBy(failure ?? process.exitCode, stdout.join(''), stderr.join(''));
  } finally {
    process.chdir(before.directory);
    process.exitCode = before.exitCode;
    for (const spy of spies) spy.mockRestore();
  }
}

/** What a command ends with once a node answers it that knows who decides. Until then nothing is changed, and it is asked again. */
export async function answered(command: () => Promise<Ended>): Promise<Ended> {
  return endedWithout(command, [EXIT_UNAVAILABLE]);
}

/** The same once it is decided, too. What may have been done is asked for again, so it must be something that may be repeated. */
export async function decided(command: () => Promise<Ended>): Promise<Ended> {
  return endedWithout(command, [EXIT_UNAVAILABLE, EXIT_TEMPORARY]);
}

async function endedWithout(command: () => Promise<Ended>, codes: readonly number[]): Promise<Ended> {
  return eventually(`an exit code that is none of ${codes.join()}`, async () => {
    const told = await command();
    return codes.includes(told.code) ? undefined : told;
  });
}

/**
 * What it comes to once those whom it asks have answered it in time: a command waits two seconds for some. It is asked again, so it must
 * be one that may be repeated.
 */
export async function inTime<T>(command: () => Promise<T>): Promise<T> {
  const [told] = await eventually('those who are asked answer in time', () =>
    command().then(
      (value) => [value] as const,
      (error: unknown) => {
        if (/no answer for|the connection broke before/.test(String(error))) return undefined;
        throw error;
      },
    ),
  );
  return told;
}
