/**
 * Remembers the processes and directories that a bench has made. All of them end with the bench, also after Ctrl-C.
 * Processes are ended by id, never by name.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';

const STOP_MILLIS_MAX = 5_000;

export class Running {
  readonly #children = new Set<ChildProcess>();
  readonly #directories = new Set<string>();

  /** Remembers a process until it ends, and returns it. */
  add<T extends ChildProcess>(child: T): T {
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    child.once('error', () => this.#children.delete(child));
    return child;
  }

  /** Makes an empty directory that is deleted at the end. */
  directory(name: string): string {
    const path = mkdtempSync(join(tmpdir(), `quorate-bench-${name}-`));
    this.#directories.add(path);
    return path;
  }

  removeDirectory(path: string): void {
    this.#directories.delete(path);
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Asks a process to end, and kills it after some seconds. */
  async stop(child: ChildProcess): Promise<void> {
    if (!this.#children.has(child) || child.pid === undefined) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MILLIS_MAX);
    await exited;
    clearTimeout(timer);
  }

  /** Kills everything at once, because the bench itself is about to end. */
  endAll(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const path of this.#directories) {
      try {
        rmSync(path, { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // A process was still writing there. The rest stays in the directory for temporary files.
      }
    }
  }
}

const SIGINT_EXIT_CODE = 130;

/**
 * Runs a command of the bench. Everything it started ends with it, also after Ctrl-C.
 *
 * @param running the processes that the command starts
 */
export function runProgram(program: Command, running: Running): void {
  const endEarly = (): void => {
    console.error('\nbench: ended early; nothing is left running');
    running.endAll();
    process.exit(SIGINT_EXIT_CODE);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, endEarly);
  program.parseAsync().catch((error: unknown) => {
    console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  });
}
