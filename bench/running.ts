/**
 * Everything a bench has started and made: processes by their id, and directories. Whatever ends the bench, Ctrl-C too,
 * ends them. Nothing is ended by name.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const STOP_MILLIS_MAX = 5_000;

export class Running {
  readonly #children = new Set<ChildProcess>();
  readonly #directories = new Set<string>();

  /** Remembers a process until it has ended. Returns it. */
  add<T extends ChildProcess>(child: T): T {
    this.#children.add(child);
    child.once('exit', () => this.#children.delete(child));
    child.once('error', () => this.#children.delete(child));
    return child;
  }

  /** A new empty directory, deleted at the end. */
  directory(name: string): string {
    const path = mkdtempSync(join(tmpdir(), `quorate-bench-${name}-`));
    this.#directories.add(path);
    return path;
  }

  removeDirectory(path: string): void {
    this.#directories.delete(path);
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Asks a process to end, and insists after some seconds. */
  async stop(child: ChildProcess): Promise<void> {
    if (!this.#children.has(child) || child.pid === undefined) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MILLIS_MAX);
    await exited;
    clearTimeout(timer);
  }

  /** Ends everything now, without waiting: the bench itself is about to end. */
  endAll(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const path of this.#directories) {
      try {
        rmSync(path, { recursive: true, force: true, maxRetries: 3 });
      } catch {
        // Of a process that was still writing; it is in the directory for temporary files.
      }
    }
  }
}
