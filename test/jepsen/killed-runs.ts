/**
 * A run that was killed could clean up nothing: its nodes live on, paused ones too, and its file systems stay mounted.
 * The next run does it. Touches nothing of a run whose process lives, nor what does not say whose it is.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const CLUSTER_PREFIX = 'quorate-jepsen-';
const OWNER_FILE = 'owner.json';

interface Owner {
  readonly pid: number;
  /** Ids of processes come back; with the same start they do not. */
  readonly start: string;
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise;
  }
}

/** When a process started, as the system counts; '' if there is none, or the system does not tell. */
function startOf(pid: number): string {
  // The name in parentheses may hold spaces. The 22nd field of all is the start.
  const stat = readOr(`/proc/${pid}/stat`, '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** This process uses the directory. */
export function claimDirectory(directory: string): void {
  const owner: Owner = { pid: process.pid, start: startOf(process.pid) };
  writeFileSync(join(directory, OWNER_FILE), JSON.stringify(owner));
}

/** Whether the process that made it is gone for certain. */
function isAbandoned(directory: string): boolean {
  const text = readOr(join(directory, OWNER_FILE), '');
  if (text === '') return false;
  const { pid, start } = JSON.parse(text) as Owner;
  return start !== '' && startOf(pid) !== start;
}

/** Processes that were given a path in the directory. */
function processesOf(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) =>
      readOr(`/proc/${pid}/cmdline`, '')
        .split('\0')
        .some((argument) => argument.startsWith(`${directory}/`)),
    );
}

function mountsIn(directory: string): string[] {
  return readOr('/proc/mounts', '')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${directory}/`));
}

/** Ends, unmounts and deletes what killed runs left in `parent`. Returns a line for each. */
export function cleanUpAfterKilled(parent = tmpdir()): string[] {
  const lines: string[] = [];
  for (const name of readdirSync(parent)) {
    const directory = join(parent, name);
    if (!name.startsWith(CLUSTER_PREFIX) || !isAbandoned(directory)) continue;
    const processes = processesOf(directory);
    for (const pid of processes) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has just ended by itself.
      }
    }
    const mounts = mountsIn(directory);
    // Lazily: a process that was just killed may still use it.
    for (const path of mounts) spawnSync('umount', ['--lazy', path]);
    rmSync(directory, { recursive: true, force: true });
    lines.push(
      `cleaned up after a killed run: ${directory}, ${processes.length} processes, ${mounts.length} mounts`,
    );
  }
  return lines;
}
