/** Runs the `quorate` commands that prepare nodes and change the nodes of a running cluster. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { NodeChange } from '../../src/api/cluster-change.ts';
import { explain } from '../../src/cli/explain-error.ts';
import { changeNodes } from '../../src/cli/nodes-command.ts';
import { WAIT_MILLIS_MAX } from './harness.ts';

export const CLI = join(import.meta.dirname, '../../dist/src/cli/main.js');
const run = promisify(execFile);

/** Resolves with what it printed; rejects with its exit code and errors. */
export async function quorate(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [CLI, ...args]);
  return stdout;
}

/** A node on this machine. */
export function nodeAt(id: number, http: number, peer: number): NodeAddress {
  const host = '127.0.0.1';
  return { id, http: { host, port: http }, peer: { host, port: peer } };
}

export function nodeOptions({ id, http, peer }: NodeAddress): string[] {
  const reported = [http, peer].map(({ host, port }) => `${host}:${port}`);
  return [String(id), '--http', reported[0] ?? '', '--peer', reported[1] ?? ''];
}

/**
 * `quorate nodes`, in this process. Resolves with what it printed when all partitions have moved; rejects with its exit
 * code and errors.
 */
export async function command(port: number, change: NodeChange): Promise<string> {
  const lines: string[] = [];
  const print = (line: string): unknown => lines.push(`${line}\n`);
  try {
    await changeNodes({ node: `http://127.0.0.1:${port}`, change, timeoutMillis: WAIT_MILLIS_MAX, print });
  } catch (error) {
    const { message, exitCode } = explain(error);
    throw Object.assign(new Error(message, { cause: error }), { code: exitCode, stderr: message });
  }
  return lines.join('');
}
