/**
 * Starts, kills and restarts the nodes of a Quorate cluster, as real processes of the compiled command on this machine.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CommandWrapper,
  type NodeProcess,
  startNodeProcess,
  trustNodes,
  waitUntilReady,
} from '../../cluster/processes.ts';
import {
  createCluster,
  LOCAL_DEFAULTS,
  localConfig,
  PARTITIONS_PER_NODE,
} from '../../src/config/cluster-directory.ts';
import { makeAllCertificates } from '../../src/cli/make-certificates.ts';
import { listenerUrl, nodeFetch } from '../../src/cli/node-fetch.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { OWN_TLS_SETTINGS } from '../../src/tls/certificate-files.ts';
import type { Address } from '../load/load-job.ts';
import { freeBasePort } from './servers.ts';
import type { Running } from '../running.ts';
import { LOAD_RULES } from '../workloads.ts';

const READY_MILLIS_MAX = 120_000;
const TOKEN_TRIES_MAX = 50;
const TOKEN_PAUSE_MILLIS = 200;
/** Distance of each listener's port from the base port: HTTP, peers, Redis protocol. */
const LISTENERS = [0, 1_000, 2_000];

export interface QuorateShape {
  /** Default: the same as `npm start`. */
  readonly nodes?: number;
  readonly partitions?: number;
  /** Copies of each partition. */
  readonly copies?: number;
  /** Uses TLS everywhere. */
  readonly tls?: true;
}

/** The load names its rules in requests. The first rule of a table cannot be named, so the default rule comes first. */
export function configOf(
  basePort: number,
  { nodes, partitions, copies, tls }: QuorateShape & { readonly nodes: number; readonly partitions: number },
): ClusterConfig {
  const local = localConfig({ ...LOAD_RULES.open, nodes, partitions, basePort });
  const rules = Object.entries(LOAD_RULES).map(([id, rule]) => ({ id, ...rule, clock: 'cluster' as const }));
  return {
    ...local,
    rules: { ...local.rules, rules: [...local.rules.rules, ...rules] },
    ...(copies !== undefined && { replicas: copies }),
    ...(tls === true && { tls: OWN_TLS_SETTINGS }),
  };
}

export class QuorateCluster {
  readonly config: ClusterConfig;
  readonly #directory: string;
  readonly #running: Running;
  readonly #nodes = new Map<number, NodeProcess>();

  private constructor(running: Running, directory: string, config: ClusterConfig) {
    this.#running = running;
    this.#directory = directory;
    this.config = config;
  }

  /** Starts the cluster; it is ready when this resolves. */
  static async start(running: Running, shape: QuorateShape = {}): Promise<QuorateCluster> {
    const { nodes = LOCAL_DEFAULTS.nodes, partitions = PARTITIONS_PER_NODE * nodes } = shape;
    const ids = Array.from({ length: nodes }, (_, i) => i + 1);
    const basePort = await freeBasePort(LISTENERS.flatMap((listener) => ids.map((id) => listener + id)));
    const config = configOf(basePort, { ...shape, nodes, partitions });
    const directory = running.directory('quorate');
    await createCluster(directory, config);
    if (shape.tls === true) await makeAllCertificates(directory, config);
    await trustNodes(directory, config.tls);
    const cluster = new QuorateCluster(running, directory, config);
    for (const id of ids) cluster.startNode(id);
    await cluster.ready();
    return cluster;
  }

  get pids(): number[] {
    return [...this.#nodes.values()].flatMap(({ child }) => child.pid ?? []);
  }

  get http(): Address[] {
    return this.config.nodes.map(({ http }) => http);
  }

  get resp(): Address[] {
    return this.config.nodes.flatMap(({ resp }) => resp ?? []);
  }

  startNode(id: number, wrap?: CommandWrapper): void {
    const node = startNodeProcess(this.#directory, id, wrap);
    this.#running.add(node.child);
    this.#nodes.set(id, node);
  }

  /** Kills a node; resolves when its process has ended. */
  async kill(id: number): Promise<void> {
    const node = this.#nodes.get(id);
    node?.child.kill('SIGKILL');
    await node?.exited;
    this.#nodes.delete(id);
  }

  async ready(): Promise<void> {
    await waitUntilReady(this.config, READY_MILLIS_MAX);
  }

  /** Creates a token. The first must have role admin and closes the cluster. @param shown a token of role admin */
  async createToken(role: 'admin' | 'decide', shown?: string): Promise<string> {
    const [first] = this.config.nodes;
    if (first === undefined) throw new RangeError('a cluster has nodes');
    for (let tries = 1; ; tries += 1) {
      const response = await nodeFetch(new URL('/v1/tokens', listenerUrl(first, this.config.tls)), {
        signal: AbortSignal.timeout(READY_MILLIS_MAX),
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(shown !== undefined && { authorization: `Bearer ${shown}` }),
        },
        body: JSON.stringify({ role, name: 'bench' }),
      });
      if (response.status === 201) return ((await response.json()) as { readonly token: string }).token;
      // The leader of group 0 may not be known yet.
      if (tries === TOKEN_TRIES_MAX) throw new Error(`no token of role ${role}: ${response.status}`);
      await delay(TOKEN_PAUSE_MILLIS);
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#nodes.values()].map(async ({ child }) => this.#running.stop(child)));
    this.#running.removeDirectory(this.#directory);
  }
}
