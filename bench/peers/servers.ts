/** Finds free ports, and finds, starts and waits for programs of others, such as Redis. */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Running } from '../running.ts';
import { createServer } from 'node:net';

/** Ports are drawn below the range that the system uses for outgoing connections. */
const PORT_LOWEST = 10_000;
const PORT_COUNT = 18_000;
const ATTEMPTS_MAX = 1_000;

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * Finds a base port such that the ports at all these distances from it are free.
 *
 * @throws Error if none is found
 */
export async function freeBasePort(distances: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const base = PORT_LOWEST + Math.floor(Math.random() * PORT_COUNT);
    const free = await Promise.all(distances.map((distance) => isFree(base + distance)));
    if (free.every(Boolean)) return base;
  }
  throw new Error('found no free ports on 127.0.0.1');
}

export async function freePort(): Promise<number> {
  return freeBasePort([0]);
}

const START_MILLIS_MAX = 30_000;
const CHECK_EVERY_MILLIS = 20;
const LAST_LINES = 5;

/** Whether the shell would find this program. */
export function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export interface ServerProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly logPath: string;
}

/** Starts a program whose output goes to a file in `directory`. */
export function startServer(
  running: Running,
  command: {
    readonly program: string;
    readonly args: readonly string[];
    readonly directory: string;
    /** User to run as; absent: the user who started the bench. */
    readonly uid?: number;
    readonly gid?: number;
  },
): ServerProcess {
  const { program, args, directory, ...owner } = command;
  const logPath = join(directory, `${basename(program)}-${args.length}-${Date.now()}.log`);
  const log = openSync(logPath, 'a');
  const child = running.add(spawn(program, args, { cwd: directory, stdio: ['ignore', log, log], ...owner }));
  closeSync(log);
  if (child.pid === undefined) throw new Error(`${program} could not be started`);
  return { child, pid: child.pid, logPath };
}

/**
 * Waits until `isReady` answers true.
 *
 * @throws Error with the last lines of the server's output, if it ends or takes too long
 */
export async function untilReady(server: ServerProcess, isReady: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + START_MILLIS_MAX;
  for (;;) {
    if (await isReady().catch(() => false)) return;
    const hasEnded = server.child.exitCode !== null || server.child.signalCode !== null;
    if (hasEnded || performance.now() > deadline) {
      const lines = readFileSync(server.logPath, 'utf8').trim().split('\n').slice(-LAST_LINES).join('\n');
      throw new Error(`${server.child.spawnfile} is not ready:\n${lines}`);
    }
    await sleep(CHECK_EVERY_MILLIS);
  }
}
