/** Starts a Node program of this folder as a process, which reports the port it listens on. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Address } from '../load/load-job.ts';
import type { Running } from '../running.ts';

export interface NodeProgram {
  readonly pid: number;
  readonly address: Address;
  readonly stop: () => Promise<void>;
}

/**
 * Starts the program.
 *
 * @param name a file of this folder, without its extension
 * @throws Error if it ends before it listens
 */
export async function startNodeProgram(
  running: Running,
  name: string,
  args: readonly string[] = [],
): Promise<NodeProgram> {
  const child = running.add(fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)), args));
  const ended = once(child, 'exit').then(() => {
    throw new Error(`${name} ended before it listened`);
  });
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number];
  ended.catch(() => undefined);
  return {
    pid: child.pid ?? 0,
    address: { host: '127.0.0.1', port },
    stop: async () => running.stop(child),
  };
}
