import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reportFrom } from '../../cluster/processes.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { readCluster } from '../../src/config/cluster-directory.ts';
import { eventually, freeBasePort, temporaryDirectory } from './harness.ts';
import { CLI, command, nodeAt, nodeOptions, quorate } from './nodes-command.ts';

const root = join(import.meta.dirname, '..', '..');
const START = join(root, 'dist', 'cluster', 'start.js');

/** A command whose output is collected. */
class Session {
  readonly child: ChildProcess;
  output = '';

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
  }

  async says(text: string): Promise<void> {
    await eventually(`"${text}"`, () => (this.output.includes(text) ? true : undefined)).catch(
      (error: unknown) => {
        throw new Error(`${String(error)} in: ${this.output}`, { cause: error });
      },
    );
  }

  /** Its exit code, once it ended by itself. */
  async ended(): Promise<number | null> {
    return eventually('it ends by itself', () => this.child.exitCode ?? undefined);
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill(signal);
      await once(this.child, 'exit');
    }
    return this.child.exitCode;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('the cluster script', () => {
  let directory: string;
  let basePort: number;
  const sessions: Session[] = [];
  beforeEach(async () => {
    directory = await temporaryDirectory();
    basePort = await freeBasePort();
  });
  afterEach(async () => {
    await Promise.all(sessions.splice(0).map(async (session) => session.end('SIGTERM')));
    await rm(directory, { recursive: true });
  });

  function run(...args: string[]): Session {
    const session = new Session(args);
    sessions.push(session);
    return session;
  }

  function start(...args: string[]): Session {
    return run(START, '--data', directory, '--base-port', String(basePort), ...args);
  }

  async function statusOf(id: number): Promise<ClusterReport> {
    return eventually(`node ${id} says something about the cluster`, () =>
      reportFrom(`http://127.0.0.1:${basePort + id}`),
    );
  }

  async function pids(): Promise<number[]> {
    const { nodes } = await statusOf(1);
    return nodes.map(({ pid }) => pid ?? 0);
  }

  async function ask(id = 1): Promise<{ allowed: boolean; limit: number; remaining: number }> {
    const response = await fetch(`http://127.0.0.1:${basePort + id}/v1/allow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"userId":"ada"}',
    });
    return (await response.json()) as { allowed: boolean; limit: number; remaining: number };
  }

  it('starts three nodes, prints a curl line that works, watches them, and stops cleanly', async () => {
    const cluster = start('--limit', '2', '--window', '60000', '--partitions', '4');
    await cluster.says('Ctrl-C stops the cluster');
    expect(cluster.output).toContain("rule 'default': 2 per 60000 ms");
    const curl = cluster.output.slice(
      cluster.output.indexOf('curl '),
      cluster.output.indexOf('\'{"userId":"ada"}\''),
    );
    const { stdout } = await promisify(execFile)('bash', ['-c', `${curl} '{"userId":"ada"}'`]);
    expect(JSON.parse(stdout)).toMatchObject({ allowed: true, limit: 2, remaining: 1 });

    const [, second = 0] = await pids();
    process.kill(second, 'SIGKILL');
    await cluster.says('node 2 was ended by SIGKILL');
    await cluster.says('npm run node -- --id 2');
    run(CLI, 'node', '--id', '2', '--data', directory);
    await cluster.says('node 2 is up again');

    const running = await pids();
    expect(await cluster.end('SIGINT')).toBe(0);
    const own = running.filter((_, i) => i !== 1);
    expect(own.filter(isAlive)).toEqual([]);
    // Whoever was started elsewhere goes on, and is named: now, and when it is in the way.
    const [, by = 0] = running;
    const address = `127.0.0.1:${basePort + 2}`;
    expect(cluster.output).toContain(
      `node 2 (${address}, pid ${by}) was not started by this command and keeps running`,
    );
    const next = start();
    await next.says(`a cluster is already running on these ports: node 2 at ${address} (pid ${by})`);
    expect(await next.ended()).toBe(69);
  });

  it('keeps its data across restarts, replicates a changed limit, and starts over when told', async () => {
    // The window is longer than a test takes on any machine.
    const first = start('--limit', '1', '--window', '3600000');
    await first.says('Ctrl-C stops the cluster');
    expect(await ask()).toMatchObject({ allowed: true, remaining: 0 });
    await first.end('SIGTERM');

    // Edited without a higher version, it is not in force: the option has to see to it all the same.
    const path = join(directory, 'cluster.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"limit": 1', '"limit": 3'));
    const second = start('--limit', '3');
    await second.says('Ctrl-C stops the cluster');
    const raised = await eventually('the new limit', async () => {
      const answer = await ask();
      return answer.limit === 3 ? answer : undefined;
    });
    // The grant of the first run still counts.
    expect(raised.remaining).toBeLessThanOrEqual(1);
    expect(second.output).toContain("rule 'default': 3 per 3600000 ms");
    expect((await statusOf(2)).rules).toMatchObject({ version: 2, rules: [{ limit: 3 }] });
    await second.end('SIGTERM');

    await writeFile(path, (await readFile(path, 'utf8')).replace('"limit": 3', '"limit": 2'));
    const edited = start();
    await edited.says('Ctrl-C stops the cluster');
    expect(edited.output).toContain("rule 'default': 3 per 3600000 ms");
    expect(edited.output).toMatch(/cluster.json says something else .*\n  rules.version above 2/);
    expect(await readFile(join(directory, 'logs', 'node-1.log'), 'utf8')).toContain(
      'the rules of cluster.json are not in force, and will not be: raise its rules.version above 2',
    );
    await edited.end('SIGTERM');

    const third = start('--fresh');
    await third.says('Ctrl-C stops the cluster');
    expect(await ask()).toMatchObject({ allowed: true, limit: 100, remaining: 99 });
  });

  it('moves a cluster to other ports with the node that joined it, and starts none that left or was never added', async () => {
    const limits = ['--limit', '1', '--window', '3600000', '--partitions', '4'];
    const first = start(...limits);
    await first.says('Ctrl-C stops the cluster');
    const four = nodeAt(4, basePort + 4, basePort + 1_004);
    await quorate('join', '--data', directory, ...nodeOptions(four));
    const joined = run(CLI, 'node', '--id', '4', '--data', directory);
    await command(basePort + 1, 'add', four, '--replace', '3');
    await quorate('join', '--data', directory, ...nodeOptions(nodeAt(5, basePort + 5, basePort + 1_005)));
    expect(await ask()).toMatchObject({ allowed: true });
    await first.says('node 3 is stopped: node 3 was removed from the cluster');
    const { founders } = (await readCluster(directory)) ?? {};
    await Promise.all([first.end('SIGTERM'), joined.end('SIGTERM')]);

    basePort = await freeBasePort();
    const second = start();
    await second.says('Ctrl-C stops the cluster');
    expect(second.output).toContain('starting 3 nodes of cluster');
    expect(second.output).toContain('node 3 was removed from the cluster: not started');
    expect(second.output).toContain('node 5 is prepared and does not belong to the cluster yet: not started');
    // One cluster, with what was granted before: every node denies, wherever the partition is led.
    for (const id of [1, 2, 4]) expect(await ask(id)).toMatchObject({ allowed: false, limit: 1 });
    expect((await readCluster(directory))?.founders).toEqual(founders);
    // Where the nodes are now is replicated.
    await eventually('node 1 tells the new addresses', async () => {
      const { nodes } = await statusOf(1);
      const expected = [1, 2, 4].map((id) => `127.0.0.1:${basePort + id}`);
      return nodes.map(({ http }) => http).join() === expected.join() ? true : undefined;
    });
  });

  it('stops its nodes quietly when nobody reads what it says any more', async () => {
    await quorate('init', '--data', directory, '--nodes', '1', '--base-port', String(basePort));
    const cluster = start();
    await cluster.says('starting 1 nodes');
    await eventually('node 1 answers', async () => statusOf(1).catch(() => undefined));
    cluster.child.stdout?.destroy();
    expect(await cluster.ended()).toBe(0);
    expect(cluster.output).not.toContain('EPIPE');
    await expect(fetch(`http://127.0.0.1:${basePort + 1}/healthz`)).rejects.toThrow('fetch failed');
  });

  it('refuses what does not fit the stored cluster, and explains itself', async () => {
    const cluster = start();
    await cluster.says('Ctrl-C stops the cluster');
    // A cluster that runs keeps its files, and its nodes.
    const second = start('--fresh');
    await second.says('a cluster is already running');
    expect(await second.ended()).toBe(69);
    expect((await pids()).filter(isAlive)).toHaveLength(3);
    const twin = run(CLI, 'node', '--id', '1', '--data', directory);
    await twin.says(`quorate: the database in ${join(directory, 'node-1')} is in use by another process`);
    expect(await twin.ended()).toBe(70);
    await cluster.end('SIGTERM');
    const other = start('--partitions', '8');
    await other.says('--partitions 8 does not fit');
    expect(await other.ended()).toBe(64);
  });
});
