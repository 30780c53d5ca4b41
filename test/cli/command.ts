/**
 * Runs commands in a temporary directory until they end: compiled programs as processes, or `quorate` in this process.
 */
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
  /** Text on standard error. */
  readonly said: string;
  readonly stdout: string;
}

/** Runs a command that ends by itself, and returns its output. */
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
    // A command that reads no input may have ended already.
    child.stdin?.on('error', () => {}).end(stdin);
  });
}

function saidBy(code: number, stdout: string, stderr: string): Ended {
  const complaints = stderr.split('\n').filter((line) => line.startsWith('quorate: '));
  return { code, said: complaints.at(-1) ?? stderr, stdout };
}

/** Replaces `write` of a stream and collects the lines. */
function into(lines: string[], end: string): (text: unknown) => boolean {
  return (text) => lines.push(`${String(text)}${end}`) > 0;
}

/**
 * Runs `quorate` in this process, in a tenth of the time of a new process. Only one may run at a time. It does not suit
 * commands that run a node or read a token file, because these change the process for good.
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

/** Repeats a command until a node that knows the leader answers it. Until then the command changes nothing. */
export async function answered(command: () => Promise<Ended>): Promise<Ended> {
  return endedWithout(command, [EXIT_UNAVAILABLE]);
}

/** Also repeats a command whose outcome is unknown, so the command must be safe to repeat. */
export async function decided(command: () => Promise<Ended>): Promise<Ended> {
  return endedWithout(command, [EXIT_UNAVAILABLE, EXIT_TEMPORARY]);
}

async function endedWithout(command: () => Promise<Ended>, codes: readonly number[]): Promise<Ended> {
  return eventually(`an exit code that is none of ${codes.join()}`, async () => {
    const reported = await command();
    return codes.includes(reported.code) ? undefined : reported;
  });
}

/**
 * Repeats a command until all nodes have answered it in time (some commands wait only two seconds). The command must be
 * safe to repeat.
 */
export async function inTime<T>(command: () => Promise<T>): Promise<T> {
  const [reported] = await eventually('all asked nodes answer in time', () =>
    command().then(
      (value) => [value] as const,
      (error: unknown) => {
        if (/no answer for|the connection broke before/.test(String(error))) return undefined;
        throw error;
      },
    ),
  );
  return reported;
}
