/**
 * Runs containers of a cluster as processes of the image's entry point, each with its own loopback address and host
 * name.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../cli/command.ts';
import { eventually, freePorts, temporaryDirectory } from '../cluster/harness.ts';

const ENTRY = join(ROOT, 'dist', 'src', 'cli', 'main.js');
const HOSTS_FILE = join(ROOT, 'dist', 'test', 'config', 'injected', 'hosts-file.js');
export const LIMIT = 100;
/** Longer than the test may take. */
const WINDOW_MILLIS = 86_400_000;
const SETTINGS = {
  rules: {
    rules: [{ id: 'default', limit: LIMIT, windowMillis: WINDOW_MILLIS, clock: 'cluster' }],
    requestIdHorizonMillis: 3_600_000,
    clockDriftPpm: 500,
    partitionBytesMax: 268_435_456,
  },
};
const SAID_CHARACTERS_MAX = 65_536;

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Pod {
  readonly child: ChildProcess;
  /** Resolves with the exit code; null if a signal ended the process. */
  readonly ended: Promise<number | null>;
  readonly said: () => string;
}

export class Pods {
  readonly directory: string;
  readonly #ports: Readonly<Record<'http' | 'peer' | 'resp' | 'grpc' | 'founding', number>>;
  readonly #pods = new Map<number, Pod>();
  readonly #hosts = new Map<string, string>();
  /** The test ended the process. */
  readonly #stopped = new Set<number>();
  /** Environment variables of this container only. */
  environment: Readonly<Record<string, string>> = {};

  private constructor(directory: string, ports: readonly number[]) {
    this.directory = directory;
    const [http = 0, peer = 0, resp = 0, grpc = 0, founding = 0] = ports;
    this.#ports = { http, peer, resp, grpc, founding };
  }

  static async create(): Promise<Pods> {
    return new Pods(await temporaryDirectory(), await freePorts(5));
  }

  get ports(): Readonly<Record<'http' | 'peer' | 'resp' | 'grpc' | 'founding', number>> {
    return this.#ports;
  }

  nameOf(ordinal: number): string {
    return `quorate-${ordinal}.quorate.test`;
  }

  volumeOf(ordinal: number): string {
    return join(this.directory, `volume-${ordinal}`);
  }

  /** Starts the container of an ordinal; from now on its name leads to `address`. */
  async start(ordinal: number, address: string): Promise<void> {
    this.#hosts.set(this.nameOf(ordinal), address);
    const hosts = join(this.directory, 'hosts.json');
    // Replaces the file at once: other pods resolve names at any moment, and one that reads half a file ends.
    writeFileSync(`${hosts}.new`, JSON.stringify(Object.fromEntries(this.#hosts)));
    renameSync(`${hosts}.new`, hosts);
    const settings = join(this.directory, 'settings.json');
    writeFileSync(settings, JSON.stringify(SETTINGS));
    await mkdir(this.volumeOf(ordinal), { recursive: true });
    const { http, peer, resp, grpc, founding } = this.#ports;
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', '--import', HOSTS_FILE, ENTRY, 'container'],
      {
        cwd: this.directory,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env['PATH'],
          UV_THREADPOOL_SIZE: '2',
          QUORATE_TEST_HOSTS: hosts,
          HOSTNAME: `quorate-${ordinal}`,
          QUORATE_CLUSTER_ID: 'pods',
          QUORATE_HOST: 'quorate-{ordinal}.quorate.test',
          QUORATE_LISTEN: address,
          QUORATE_HTTP_PORT: String(http),
          QUORATE_PEER_PORT: String(peer),
          QUORATE_RESP_PORT: String(resp),
          QUORATE_GRPC_PORT: String(grpc),
          QUORATE_FOUNDING_PORT: String(founding),
          QUORATE_SETTINGS: settings,
          QUORATE_DATA: this.volumeOf(ordinal),
          ...this.environment,
        },
      },
    );
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => (said = (said + text).slice(-SAID_CHARACTERS_MAX)));
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    this.#stopped.delete(ordinal);
    this.#pods.set(ordinal, { child, ended, said: () => said });
  }

  /** Runs a command that can resolve the names of the pods. Returns its exit code and its output. */
  async run(
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ): Promise<readonly [number, string]> {
    const child = spawn(process.execPath, ['--import', HOSTS_FILE, ENTRY, ...args], {
      cwd: this.directory,
      env: {
        PATH: process.env['PATH'],
        QUORATE_TEST_HOSTS: join(this.directory, 'hosts.json'),
        ...environment,
      },
    });
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
    return new Promise((resolve) => child.once('close', (code) => resolve([code ?? -1, printed])));
  }

  pod(ordinal: number): Pod {
    const pod = this.#pods.get(ordinal);
    if (pod === undefined) throw new Error(`there is no pod ${ordinal}`);
    return pod;
  }

  async stop(ordinal: number, signal: NodeJS.Signals): Promise<void> {
    this.#stopped.add(ordinal);
    const { child, ended } = this.pod(ordinal);
    child.kill(signal);
    await ended;
  }

  /** Sends a request to the current address of the pod. Status 0: no answer. */
  async ask(ordinal: number, path: string, body?: unknown): Promise<Answer> {
    for (const [each, { child, said }] of this.#pods) {
      if (!this.#stopped.has(each) && (child.exitCode !== null || child.signalCode !== null))
        throw new Error(
          `pod ${each} ended by itself, ${child.exitCode ?? child.signalCode}: ${said().slice(-4_096)}`,
        );
    }
    const address = this.#hosts.get(this.nameOf(ordinal)) ?? '';
    try {
      const response = await fetch(`http://${address}:${this.#ports.http}${path}`, {
        ...(body !== undefined && {
          method: 'POST',
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      });
      return { status: response.status, body: (await response.json()) as Answer['body'] };
    } catch {
      return { status: 0, body: {} };
    }
  }

  /** Waits until the node of each of these pods is ready. */
  async ready(ordinals: readonly number[]): Promise<void> {
    for (const ordinal of ordinals) {
      await eventually(`pod ${ordinal} is ready`, async () => {
        return (await this.ask(ordinal, '/readyz')).status === 200 ? true : undefined;
      });
    }
  }

  /** The record of the founding in a volume. */
  recordOf(ordinal: number): Readonly<Record<string, unknown>> {
    const text = readFileSync(join(this.volumeOf(ordinal), 'founding.json'), 'utf8');
    return JSON.parse(text) as Record<string, unknown>;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#pods.keys()].map(async (ordinal) => this.stop(ordinal, 'SIGKILL')));
    await rm(this.directory, { recursive: true, force: true });
  }
}
