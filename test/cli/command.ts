/** Runs the compiled commands to their end, in a directory of their own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';

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
      { cwd, timeout: 120_000 },
      (_error, stdout, stderr) => {
        const complaints = stderr.split('\n').filter((line) => line.startsWith('quorate: '));
        resolve({ code: child.exitCode ?? -1, said: complaints.at(-1) ?? stderr, stdout });
      },
    );
    // One that reads nothing may have ended.
    child.stdin?.on('error', () => {}).end(stdin);
  });
}
