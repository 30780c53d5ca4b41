/** Runs all nodes of a cluster in this process, with real sockets and disks and with clocks that the test controls. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { pino } from 'pino';
import type { LogStore } from '../../raft/driver/store.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { createCluster, nodeDirectory } from '../../src/config/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../../src/config/cluster-facts.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { NodeChange } from '../../src/api/cluster-change.ts';
import { type QuorateNode, startNode } from '../../src/node/node.ts';
import { warmUpOnce } from '../../src/node/warm-up.ts';
import type { AllowAnswer } from '../../src/api/answer.ts';
import { eventually, freePorts, temporaryDirectory, testConfig, type TestConfigOptions } from './harness.ts';

const SILENT = pino({ level: 'silent' });

export class InProcessCluster {
  readonly config: ClusterConfig;
  readonly directory: string;
  /** Offset of each node's wall clock. Tests may change it at any time. */
  readonly wallOffsetMillis = new Map<number, number>();
  readonly #monotonic = new Map<
    number,
    { readonly at: number; readonly since: number; readonly rate: number }
  >();
  readonly fatalErrors: { readonly node: number; readonly error: unknown }[] = [];
  readonly #nodes = new Map<number, QuorateNode>();
  /** Configurations of nodes added later. Each lists the founders and itself. */
  readonly #joined = new Map<number, ClusterConfig>();

  private constructor(config: ClusterConfig, directory: string) {
    this.config = config;
    this.directory = directory;
  }

  static async create(options: TestConfigOptions): Promise<InProcessCluster> {
    const config = await testConfig(options);
    const directory = await temporaryDirectory();
    await createCluster(directory, config);
    return new InProcessCluster(config, directory);
  }

  /** Opens a cluster that exists already. Its directory is deleted with it. */
  static of(config: ClusterConfig, directory: string): InProcessCluster {
    return new InProcessCluster(config, directory);
  }

  async startNode(id: number, wrapStore?: (store: LogStore) => LogStore): Promise<void> {
    const node = await startNode({
      config: this.#joined.get(id) ?? this.config,
      nodeId: id,
      dataDirectory: nodeDirectory(this.directory, id),
      logger: SILENT,
      onFatal: (error) => this.fatalErrors.push({ node: id, error }),
      clocks: {
        monotonicMillis: () => this.#monotonicMillis(id),
        wallMillis: () => Date.now() + (this.wallOffsetMillis.get(id) ?? 0),
      },
      ...(wrapStore !== undefined && { wrapStore }),
    });
    this.#nodes.set(id, node);
  }

  #monotonicMillis(id: number): number {
    const { at, since, rate } = this.#monotonic.get(id) ?? { at: 0, since: 0, rate: 1 };
    return at + (performance.now() - since) * rate;
  }

  /** Changes the speed of a node's monotonic clock from now on. */
  setMonotonicRate(id: number, rate: number): void {
    this.#monotonic.set(id, { at: this.#monotonicMillis(id), since: performance.now(), rate });
  }

  /** Starts a new machine; a change of the nodes must add it. */
  async join(id: number): Promise<NodeAddress> {
    const [http = 0, peer = 0] = await freePorts(2);
    const host = '127.0.0.1';
    const address: NodeAddress = { id, http: { host, port: http }, peer: { host, port: peer } };
    this.#joined.set(id, { ...this.config, nodes: [...this.config.nodes, address] });
    const identity = { nodeId: id, incarnation: drawIncarnation(), facts: factsOf(this.config) };
    await bootstrapStore(nodeDirectory(this.directory, id), identity);
    await this.startNode(id);
    return address;
  }

  /** Changes the nodes; the partitions begin to move. */
  async accepted(change: NodeChange): Promise<number> {
    let version = Number.POSITIVE_INFINITY;
    await eventually('the change is accepted', () => {
      for (const { core } of this.#nodes.values()) {
        core.change({ type: 'nodes', change }, (result) => {
          if (result.ok) version = Math.min(version, result.version);
        });
      }
      return Number.isFinite(version) ? true : undefined;
    });
    return version;
  }

  /** Changes the nodes, and waits until all partitions have moved. */
  async change(change: NodeChange): Promise<void> {
    const version = await this.accepted(change);
    await eventually('all partitions have moved', () => {
      const nodes = [...this.#nodes.values()];
      return nodes.some(({ core }) => (core.meta.state?.settledVersion ?? 0) >= version) ? true : undefined;
    });
  }

  async startAll(): Promise<void> {
    for (const { id } of this.config.nodes) await this.startNode(id);
    await this.ready();
  }

  /**
   * Also waits for the warm-up of this process: it runs on the event loop of the nodes and would slow down their first
   * answers.
   */
  async ready(): Promise<void> {
    await warmUpOnce({ logger: SILENT, monotonicMillis: () => performance.now() });
    await eventually('every running node knows the rules and every leader', () =>
      [...this.#nodes.values()].every(({ core }) => core.isReady) ? true : undefined,
    );
  }

  node(id: number): QuorateNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} is not running`);
    return node;
  }

  get running(): number[] {
    return [...this.#nodes.keys()];
  }

  /** Stops a node like a crash: it sends nothing more, and its connections break. */
  async stopNode(id: number): Promise<void> {
    const node = this.node(id);
    this.#nodes.delete(id);
    await node.abort();
  }

  async allow(id: number, request: AllowRequest): Promise<AllowAnswer> {
    const { router } = this.node(id).core;
    return new Promise((resolve) => {
      router.ask(request, (answer) => resolve(answer));
    });
  }

  /**
   * Repeats a request until it is decided, because a busy machine may elect leaders at any time. Its id makes it count
   * once.
   */
  async decided(id: number, request: AllowRequest): Promise<AllowAnswer> {
    const asked = { requestId: randomUUID(), ...request };
    return eventually(`a request of '${request.userId}' is decided`, async () => {
      const answer = await this.allow(id, asked);
      return answer.kind === 'unavailable' ? undefined : answer;
    });
  }

  /** The node that leads the partition of `userId`, as node `id` sees it. */
  leaderOf(id: number, userId: string): number {
    const node = this.node(id);
    return node.core.partitions.get(node.core.router.partitionOf(userId))?.leader ?? 0;
  }

  async stop(): Promise<void> {
    for (const id of this.running) await this.stopNode(id);
    await rm(this.directory, { recursive: true, force: true });
  }
}
