/** Runs a cluster of real node processes in a temporary directory, with a client that records its answers. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  clusterReport,
  type CommandWrapper,
  type NodeProcess,
  startNodeProcess,
  trustNodes,
  waitUntilReady,
} from '../../cluster/processes.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { makeAllCertificates } from '../../src/cli/make-certificates.ts';
import { OWN_TLS_SETTINGS } from '../../src/tls/certificate-files.ts';
import { createCluster, localConfig } from '../../src/config/cluster-directory.ts';
import type { ClusterConfig, Timing } from '../../src/config/config.ts';
import type { HttpSettings } from '../../src/config/http-settings.ts';
import type { Rule } from '../../src/api/rule.ts';

/** Ports reserved by test processes. A stopped node does not listen, so its ports must be reserved. */
const RESERVED = join(tmpdir(), `quorate-test-ports-${process.getuid?.() ?? 0}`);

/**
 * Ports reserved for this process, outside the system's range for outgoing connections: a restarted node needs the
 * same ports.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (!ports.has(port) && (await isOurs(port))) ports.add(port);
  }
  return [...ports];
}

/** A base port for the cluster script: HTTP follows it, peers, Redis protocol and gRPC are 1,000 ports further each. */
export async function freeBasePort(): Promise<number> {
  for (;;) {
    const base = 10_000 + Math.floor(Math.random() * 20_000);
    const ports = [1, 2, 3, 4, 5].flatMap((id) => [0, 1_000, 2_000, 3_000].map((more) => base + more + id));
    if ((await Promise.all(ports.map(isOurs))).every(Boolean)) return base;
  }
}

async function isOurs(port: number): Promise<boolean> {
  if (!(await isFree(port))) return false;
  const path = join(RESERVED, String(port));
  mkdirSync(RESERVED, { recursive: true });
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    if (isRunning(Number(readFileSync(path, 'utf8')))) return false;
    writeFileSync(path, String(process.pid));
    return true;
  }
}

export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

export async function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'quorate-test-'));
}

export interface TestConfigOptions {
  readonly rules: readonly Rule[];
  readonly nodes?: number;
  readonly partitions?: number;
  /** Opens the Redis protocol listener on every node. */
  readonly resp?: boolean;
  /** Opens the gRPC listener on every node. */
  readonly grpc?: boolean;
  readonly freeFloorBytes?: number;
  readonly stateBytesMax?: number;
  readonly snapshotEveryBytes?: number;
  readonly requestIdHorizonMillis?: number;
  readonly timing?: Partial<Timing>;
  readonly http?: HttpSettings;
  /** Leaders gather, as by default. */
  readonly gather?: true;
  /** Uses TLS for all listeners and peers, with certificates of a new CA. */
  readonly tls?: true;
}

export async function testConfig(options: TestConfigOptions): Promise<ClusterConfig> {
  const { nodes = 3, partitions = 16 } = options;
  const base = localConfig({ nodes, partitions, limit: 1, windowMillis: 1_000, basePort: 1 });
  const ports = await freePorts(nodes * 4);
  return {
    ...base,
    rules: {
      ...base.rules,
      rules: options.rules,
      requestIdHorizonMillis: options.requestIdHorizonMillis ?? base.rules.requestIdHorizonMillis,
    },
    freeFloorBytes: options.freeFloorBytes ?? base.freeFloorBytes,
    ...(options.stateBytesMax !== undefined && { stateBytesMax: options.stateBytesMax }),
    ...(options.http !== undefined && { http: options.http }),
    // Tests choose the leaders themselves.
    ...(options.gather !== true && { leaders: 'spread' as const }),
    ...(options.tls === true && { tls: OWN_TLS_SETTINGS }),
    ...(options.snapshotEveryBytes !== undefined && { snapshotEveryBytes: options.snapshotEveryBytes }),
    timing: { ...base.timing, ...options.timing },
    nodes: base.nodes.map((node, i) => ({
      id: node.id,
      http: { host: '127.0.0.1', port: ports[4 * i] ?? 0 },
      peer: { host: '127.0.0.1', port: ports[4 * i + 1] ?? 0 },
      ...(options.resp === true && { resp: { host: '127.0.0.1', port: ports[4 * i + 2] ?? 0 } }),
      ...(options.grpc === true && { grpc: { host: '127.0.0.1', port: ports[4 * i + 3] ?? 0 } }),
    })),
  };
}

export interface AllowBody {
  readonly allowed: boolean;
  readonly remaining?: number;
  readonly retryAfterMillis?: number;
  readonly resetMillis?: number;
  readonly reason?: string;
  readonly proposed?: boolean;
  readonly decided?: {
    readonly partition: number;
    readonly term: number;
    readonly index: number;
    readonly timeMillis: number;
  };
}

export interface AllowResult {
  readonly status: number;
  readonly body: AllowBody;
  /** On this process's monotonic clock. */
  readonly invokeMillis: number;
  readonly completeMillis: number;
}

export type AllowQuestion = {
  readonly userId: string;
  readonly rule?: string;
  readonly timestampMillis?: number;
  readonly requestId?: string;
};

const agent = new Agent({ keepAlive: true, maxSockets: 256 });

/** Time limit of each wait, generous for busy machines. */
export const WAIT_MILLIS_MAX = 240_000;

/** Sends one request without retries. Rejects if the connection breaks or no answer comes. */
export async function allowAt(port: number, question: AllowQuestion): Promise<AllowResult> {
  const payload = JSON.stringify(question);
  const invokeMillis = performance.now();
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/v1/allow',
        agent,
        timeout: WAIT_MILLIS_MAX,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as AllowBody;
          resolve({
            status: response.statusCode ?? 0,
            body,
            invokeMillis,
            completeMillis: performance.now(),
          });
        });
      },
    );
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', reject);
    request.end(payload);
  });
}

/** Polls until `condition` gives a value; fails with `what` after `timeoutMillis`. */
export async function eventually<T>(
  what: string,
  condition: () => Promise<T | undefined> | T | undefined,
  timeoutMillis = WAIT_MILLIS_MAX,
): Promise<T> {
  const deadline = performance.now() + timeoutMillis;
  for (;;) {
    const value = await condition();
    if (value !== undefined) return value;
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMillis} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Waits until every node has the document: a node without it finds no limits. */
export async function documentAtAll(ports: readonly number[], version: number): Promise<void> {
  await eventually(`every node has the document of version ${version}`, async () => {
    for (const port of ports) {
      const response = await fetch(`http://127.0.0.1:${port}/v1/rules`);
      const rules = (await response.json()) as { readonly version?: number; readonly definitions?: unknown };
      if ((rules.version ?? 0) < version || rules.definitions === undefined) return undefined;
    }
    return true;
  });
}

/** Sends it to the first node. Resolves to its version, once every partition decides by it and every node has it. */
export async function putDocument(ports: readonly number[], document: string): Promise<number> {
  const version = await eventually('every partition decides by the document', async () => {
    const headers = { 'content-type': 'application/yaml' };
    const response = await fetch(`http://127.0.0.1:${ports[0]}/v1/rules`, {
      method: 'PUT',
      headers,
      body: document,
    });
    const { version } = (await response.json()) as { readonly version?: number };
    return response.status === 200 ? version : undefined;
  });
  await documentAtAll(ports, version);
  return version;
}

/** Repeats a request until it is decided: a busy machine may elect leaders at any time. Its id makes it count once. */
export async function decidedAt(port: number, question: AllowQuestion): Promise<AllowResult> {
  const asked = { requestId: randomUUID(), ...question };
  return eventually(`a request of '${question.userId}' is decided`, async () => {
    const answer = await allowAt(port, asked);
    return answer.status === 503 ? undefined : answer;
  });
}

export class TestCluster {
  readonly config: ClusterConfig;
  readonly directory: string;
  readonly #nodes = new Map<number, NodeProcess>();

  private constructor(config: ClusterConfig, directory: string) {
    this.config = config;
    this.directory = directory;
  }

  /** Creates the databases without starting a node. */
  static async create(options: TestConfigOptions): Promise<TestCluster> {
    const config = await testConfig(options);
    const directory = await temporaryDirectory();
    await createCluster(directory, config);
    if (options.tls === true) await makeAllCertificates(directory, config);
    await trustNodes(directory, config.tls);
    return new TestCluster(config, directory);
  }

  static async start(options: TestConfigOptions): Promise<TestCluster> {
    const cluster = await TestCluster.create(options);
    for (const id of cluster.ids) cluster.startNode(id);
    await cluster.ready();
    return cluster;
  }

  get ids(): number[] {
    return this.config.nodes.map((node) => node.id);
  }

  port(id: number): number {
    const node = this.config.nodes.find((candidate) => candidate.id === id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node.http.port;
  }

  startNode(id: number, wrap?: CommandWrapper): NodeProcess {
    const node = startNodeProcess(this.directory, id, wrap);
    this.#nodes.set(id, node);
    return node;
  }

  /** Starts every node that does not run, and waits until all are ready. */
  async startMissing(): Promise<ClusterReport> {
    for (const id of this.ids) {
      const child = this.#nodes.get(id)?.child;
      if (child?.exitCode !== null || child.signalCode !== null) this.startNode(id);
    }
    return this.ready();
  }

  /** SIGKILL, and wait until the process is gone. */
  async kill(id: number): Promise<void> {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was not started`);
    node.child.kill('SIGKILL');
    await node.exited;
  }

  signal(id: number, signal: NodeJS.Signals): void {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was not started`);
    node.child.kill(signal);
  }

  exitOf(id: number): NodeProcess['exited'] {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} was not started`);
    return node.exited;
  }

  async ready(): Promise<ClusterReport> {
    return waitUntilReady(this.config, WAIT_MILLIS_MAX);
  }

  async status(): Promise<ClusterReport> {
    return eventually('a node that reports the cluster status', () => clusterReport(this.config));
  }

  async allow(id: number, question: AllowQuestion): Promise<AllowResult> {
    return allowAt(this.port(id), question);
  }

  async decided(id: number, question: AllowQuestion): Promise<AllowResult> {
    return decidedAt(this.port(id), question);
  }

  /** Ends all nodes by SIGKILL. Tests of a graceful stop stop nodes themselves. */
  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.keys()].map(async (id) => this.kill(id)));
    await rm(this.directory, { recursive: true, force: true });
  }
}
