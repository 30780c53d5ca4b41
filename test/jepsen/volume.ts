/** File systems of their own for the databases of single nodes, to be filled up or to lose their power. Needs root. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, truncateSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const BALLAST = 'ballast';
const BLOCK = Buffer.alloc(64 << 10);

/** Runs a command; throws with what it printed if it fails. */
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

  /** Takes all space but `freeBytes`, as well as that can be told. */
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

  /** After a power cut, with nobody using it: the file system as it is found when the power is back. */
  remount(): void {
    this.#unmount();
    this.#mount();
  }

  remove(): void {
    this.#unmount();
  }

  /** For the last moment of a process: whoever still uses it keeps it until he is gone. */
  abandon(): void {
    if (this.#isMounted) spawnSync('umount', ['--lazy', this.path]);
    this.#isMounted = false;
  }
}
