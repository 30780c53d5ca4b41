/** Runs the cluster script like a user, in a temporary directory and at free ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { reportFrom } from '../../cluster/processes.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { eventually, freeBasePort, temporaryDirectory } from './harness.ts';

const START = join(import.meta.dirname, '..', '..', 'dist', 'cluster', 'start.js');

/** A command whose output is collected. */
export class Session {
  readonly child: ChildProcess;
  output = '';
  readonly #closed: Promise<unknown>;

  constructor(args: readonly string[], environment: NodeJS.ProcessEnv = {}, program = process.execPath) {
    this.child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    this.#closed = once(this.child, 'close');
    this.child.stderr?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
  }

  async says(text: string): Promise<void> {
    await eventually(`"${text}"`, () => (this.output.includes(text) ? true : undefined)).catch(
      (error: unknown) => {
        throw new Error(`${String(error)} in: ${this.output}`, { cause: error });
      },
    );
  }

  /** Exit code, after the command has ended and all its output has arrived. */
  async ended(): Promise<number | null> {
    const code = await eventually('the command ends by itself', () => this.child.exitCode ?? undefined);
    await this.#closed;
    return code;
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    await this.#closed;
    return this.child.exitCode;
  }
}

export class ClusterScript {
  readonly directory: string;
  basePort: number;
  readonly #sessions: Session[] = [];

  private constructor(directory: string, basePort: number) {
    this.directory = directory;
    this.basePort = basePort;
  }

  static async create(): Promise<ClusterScript> {
    return new ClusterScript(await temporaryDirectory(), await freeBasePort());
  }

  /** Ends all processes and deletes all files. */
  async dispose(): Promise<void> {
    await Promise.all(this.#sessions.splice(0).map(async (session) => session.end('SIGTERM')));
    await rm(this.directory, { recursive: true });
  }

  /** Chooses other ports for later starts. */
  async move(): Promise<void> {
    this.basePort = await freeBasePort();
  }

  run(...args: string[]): Session {
    const session = new Session(args);
    this.#sessions.push(session);
    return session;
  }

  start(...args: string[]): Session {
    return this.run(START, '--data', this.directory, '--base-port', String(this.basePort), ...args);
  }

  /**
   * Starts the script beside running nodes and waits until it ends. It repeats this if a paused node did not answer it.
   */
  async refused(...args: string[]): Promise<Session> {
    return eventually('the running nodes answer in time', async () => {
      const session = this.start(...args);
      await session.ended();
      return /is in use by another program|pid unknown/.test(session.output) ? undefined : session;
    });
  }

  async statusOf(id: number): Promise<ClusterReport> {
    return eventually(`node ${id} says something about the cluster`, () =>
      reportFrom(`http://127.0.0.1:${this.basePort + id}`),
    );
  }

  /** Process ids by node id. A node learns the process ids of the others with a delay. */
  async pids(nodes: number): Promise<number[]> {
    return eventually('node 1 knows all process ids', async () => {
      const known = (await this.statusOf(1)).nodes.flatMap(({ pid }) => pid ?? []);
      return known.length === nodes ? known : undefined;
    });
  }

  async ask(id = 1): Promise<{ allowed: boolean; limit: number; remaining: number }> {
    const response = await fetch(`http://127.0.0.1:${this.basePort + id}/v1/allow`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"userId":"ada"}',
    });
    return (await response.json()) as { allowed: boolean; limit: number; remaining: number };
  }
}
