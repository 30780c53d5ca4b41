/** Separate file systems for the databases of single nodes, which can be filled up or lose power. Needs root. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, truncateSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const BALLAST = 'ballast';
const BLOCK = Buffer.alloc(64 << 10);

/** Runs a command. If it fails, throws its output. */
export function run(command: string, ...args: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status === 0) return;
  throw new Error(`${command} failed: ${error?.message ?? stderr.toString().trim()}`);
}

export class Volume {
  readonly kind: 'tmpfs' | 'ext4';
  readonly path: string;
  readonly #mountArguments: readonly string[];
  #isMounted = false;

  private constructor(kind: Volume['kind'], path: string, mountArguments: readonly string[]) {
    this.kind = kind;
    this.path = path;
    this.#mountArguments = mountArguments;
    mkdirSync(path, { recursive: true });
    this.#mount();
  }

  /** A small file system in memory. */
  static tmpfs(path: string, bytes: number): Volume {
    return new Volume('tmpfs', path, ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs']);
  }

  /** A real file system in the file `<path>.img`. */
  static ext4(path: string, bytes: number): Volume {
    const image = `${path}.img`;
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(image, 'w'));
    truncateSync(image, bytes);
    run('mkfs.ext4', '-q', '-F', image);
    return new Volume('ext4', path, ['-o', 'loop', image]);
  }

  #mount(): void {
    run('mount', ...this.#mountArguments, this.path);
    this.#isMounted = true;
  }

  #unmount(): void {
    if (!this.#isMounted) return;
    run('umount', this.path);
    this.#isMounted = false;
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }

  /** Takes all space except about `freeBytes`. */
  fill(freeBytes: number): void {
    const file = openSync(join(this.path, BALLAST), 'a');
    try {
      while (this.freeBytes > freeBytes) {
        const bytes = Math.min(BLOCK.byteLength, this.freeBytes - freeBytes);
        writeSync(file, BLOCK, 0, bytes);
      }
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    } finally {
      closeSync(file);
    }
  }

  empty(): void {
    rmSync(join(this.path, BALLAST), { force: true });
  }

  /** Mounts the file system again after a power cut, as it was left. No process may use it. */
  remount(): void {
    this.#unmount();
    this.#mount();
  }

  remove(): void {
    this.#unmount();
  }

  /** Unmounts at the last moment of this process. Processes that still use the file system keep it until they end. */
  abandon(): void {
    if (this.#isMounted) spawnSync('umount', ['--lazy', this.path]);
    this.#isMounted = false;
  }
}
