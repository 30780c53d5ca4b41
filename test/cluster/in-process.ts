/** A cluster whose nodes all run in this process, over real sockets and disks, with clocks the test controls. */
import { rm } from 'node:fs/promises';
import { pino } from 'pino';
import type { LogStore } from '../../raft/store.ts';
import { createCluster, nodeDirectory } from '../../src/cluster-directory.ts';
import type { ClusterConfig } from '../../src/config.ts';
import type { AllowRequest } from '../../src/limiter/request.ts';
import { type QuorateNode, startNode } from '../../src/node.ts';
import type { RoutedAnswer } from '../../src/router/router.ts';
import { eventually, temporaryDirectory, testConfig, type TestConfigOptions } from './harness.ts';

export class InProcessCluster {
  readonly config: ClusterConfig;
  readonly directory: string;
  /** Added to each node's wall clock; may be changed at any moment. */
  readonly wallOffsetMillis = new Map<number, number>();
  readonly fatalErrors: { readonly node: number; readonly error: unknown }[] = [];
  readonly #nodes = new Map<number, QuorateNode>();

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

  async startNode(id: number, wrapStore?: (store: LogStore) => LogStore): Promise<void> {
    const node = await startNode({
      config: this.config,
      nodeId: id,
      dataDirectory: nodeDirectory(this.directory, id),
      logger: pino({ level: 'silent' }),
      onFatal: (error) => this.fatalErrors.push({ node: id, error }),
      clocks: {
        monotonicMillis: () => performance.now(),
        wallMillis: () => Date.now() + (this.wallOffsetMillis.get(id) ?? 0),
      },
      ...(wrapStore !== undefined && { wrapStore }),
    });
    this.#nodes.set(id, node);
  }

  async startAll(): Promise<void> {
    for (const { id } of this.config.nodes) await this.startNode(id);
    await this.ready();
  }

  async ready(): Promise<void> {
    await eventually('every running node knows every leader', () => {
      const nodes = [...this.#nodes.values()];
      const known = nodes.every((node) => [...node.core.partitions.values()].every((p) => p.leader !== 0));
      return known ? true : undefined;
    });
  }

  node(id: number): QuorateNode {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`node ${id} is not running`);
    return node;
  }

  get running(): number[] {
    return [...this.#nodes.keys()];
  }

  /** Stops a node as a crash would: it says not a word more, and its connections break. */
  async stopNode(id: number): Promise<void> {
    const node = this.node(id);
    this.#nodes.delete(id);
    node.core.raft.stop();
    await node.close();
  }

  async allow(id: number, request: AllowRequest): Promise<RoutedAnswer> {
    const { router } = this.node(id).core;
    return new Promise((resolve) => {
      router.allow(request, (answer) => resolve(answer));
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
