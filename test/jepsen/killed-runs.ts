/**
 * Cleans up after runs that were killed: their node processes still live, also paused ones, and their file systems are
 * still mounted. The next run calls this. It leaves a directory alone if the process of its run lives, or if it does
 * not name its process.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const CLUSTER_PREFIX = 'quorate-jepsen-';
const OWNER_FILE = 'owner.json';

interface Owner {
  readonly pid: number;
  /** Process ids are reused; an id plus a start time is not. */
  readonly start: string;
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return otherwise;
  }
}

/** When a process started, in the unit of the system. '' if there is none, or if the system does not show it. */
function startOf(pid: number): string {
  // The name in parentheses may hold spaces. The start is the 22nd field of the line.
  const stat = readOr(`/proc/${pid}/stat`, '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** Records that this process uses the directory. */
export function claimDirectory(directory: string): void {
  const owner: Owner = { pid: process.pid, start: startOf(process.pid) };
  writeFileSync(join(directory, OWNER_FILE), JSON.stringify(owner));
}

/** The process that made it is certainly gone. */
function isAbandoned(directory: string): boolean {
  const text = readOr(join(directory, OWNER_FILE), '');
  if (text === '') return false;
  const { pid, start } = JSON.parse(text) as Owner;
  return start !== '' && startOf(pid) !== start;
}

/** Processes with a path in the directory among their arguments. */
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
