/**
 * A cluster of real node processes. Every peer link goes through a fault proxy, and each node runs as on a machine of
 * its own. This file does things to several nodes at once and reports on the cluster as a whole. The nemeses decide
 * when, and to which nodes.
 */
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FaultNetwork } from './fault-network.ts';
import { type NodeExit, waitUntilReady } from '../../cluster/processes.ts';
import type { NodeId } from '../../raft/types.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { type ClusterUnderTestOptions, configOf } from './cluster-options.ts';
import { claimDirectory, CLUSTER_PREFIX } from './killed-runs.ts';
import { compile, lacks } from './machine.ts';
import { createDirectory, machineAt, volumeFor } from './node-machine.ts';
import { NodeUnderTest, UP_MILLIS_MAX } from './node-under-test.ts';
import { run } from './volume.ts';

/** A process that ended. */
export interface KnownExit extends NodeExit {
  readonly id: NodeId;
  /**
   * The reason announced with `expectExit`. Undefined: the exit was not caused by the test, the node failed by itself.
   */
  readonly expected: string | undefined;
}

interface ClusterInit {
  readonly directory: string;
  readonly config: ClusterConfig;
  readonly network: FaultNetwork;
}

export class ClusterUnderTest {
  readonly directory: string;
  readonly network: FaultNetwork;
  /** The configuration for clients: real addresses, including the spares. */
  readonly config: ClusterConfig;
  /** All processes that ended, in order. */
  readonly exits: KnownExit[] = [];
  readonly #nodes = new Map<NodeId, NodeUnderTest>();
  readonly #onExit = (): void => this.#abandon();

  private constructor({ directory, config, network }: ClusterInit) {
    this.directory = directory;
    this.config = config;
    this.network = network;
    process.once('exit', this.#onExit);
  }

  /** Creates everything on disk. No node runs yet. */
  static async create(options: ClusterUnderTestOptions): Promise<ClusterUnderTest> {
    const directory = await mkdtemp(join(tmpdir(), CLUSTER_PREFIX));
    claimDirectory(directory);
    const config = await configOf(options);
    const network = await FaultNetwork.create(config.nodes, options.random);
    const cluster = new ClusterUnderTest({ directory, config, network });
    try {
      await cluster.#furnish(options);
      return cluster;
    } catch (error) {
      await cluster.dispose();
      throw error;
    }
  }

  async #furnish({ nodes, volumes = true, mutant }: ClusterUnderTestOptions): Promise<void> {
    const { directory, config, network, archiveDirectory } = this;
    const library = lacks.compiler() === undefined ? join(directory, 'sync-fault.so') : undefined;
    if (library !== undefined) {
      compile('sync-fault', library);
      compile('power-cut', join(directory, 'power-cut'));
    }
    for (const address of config.nodes) {
      const { id } = address;
      const machine = machineAt(directory, address, volumes ? volumeFor(directory, id, nodes) : undefined);
      const others = config.nodes.filter((other) => other.id !== id);
      const node = new NodeUnderTest({
        machine,
        role: id > nodes ? 'spare' : 'member',
        surroundings: {
          syncFault: library,
          archiveDirectory,
          // Nodes pass on the addresses of others, so each node would find ways around its own links.
          unreachablePorts: [...others.map(({ peer }) => peer.port), ...network.portsOfOthers(id)],
          mutant,
        },
        onExit: (exit, expected) => this.exits.push({ id, ...exit, expected }),
      });
      this.#nodes.set(id, node);
      await createDirectory(machine, config, network);
    }
  }

  get logsDirectory(): string {
    return join(this.directory, 'logs');
  }

  /** Everything that was ever in the logs of the nodes: see injected/archive.ts. */
  get archiveDirectory(): string {
    return join(this.directory, 'archive');
  }

  node(id: NodeId): NodeUnderTest {
    const node = this.#nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  /** Members of the cluster, as far as this test has changed them. */
  get members(): NodeId[] {
    return this.#ids(({ role }) => role === 'member');
  }

  get spares(): NodeId[] {
    return this.#ids(({ role }) => role === 'spare');
  }

  /** Nodes whose process lives, paused or not. */
  get running(): NodeId[] {
    return this.#ids(({ isRunning }) => isRunning);
  }

  /** Exits that no nemesis announced. */
  get unexpectedExits(): KnownExit[] {
    return this.exits.filter(({ expected }) => expected === undefined);
  }

  #ids(isWanted: (node: NodeUnderTest) => boolean): NodeId[] {
    return [...this.#nodes.values()].filter(isWanted).map(({ id }) => id);
  }

  /** Starts the members that do not run, and waits until they answer. */
  async startAll(): Promise<void> {
    const stopped = this.members.map((id) => this.node(id)).filter(({ isRunning }) => !isRunning);
    for (const node of stopped) node.start();
    for (const node of stopped) {
      if (!(await node.isUp())) throw new Error(`node ${node.id} does not start; see ${this.logsDirectory}`);
    }
  }

  /** Sends SIGKILL to all of them at once. Resolves when they are gone. */
  async kill(...ids: readonly NodeId[]): Promise<void> {
    await Promise.all(ids.map(async (id) => this.node(id).kill()));
  }

  /** Cuts the power of all these nodes at once: unsynced data is lost, and the processes are killed. */
  async cutPower(...ids: readonly NodeId[]): Promise<void> {
    const nodes = ids.map((id) => this.node(id));
    for (const node of nodes) node.expectExit('power cut');
    for (const { machine } of nodes) run(join(this.directory, 'power-cut'), machine.volume?.path ?? '');
    await this.kill(...ids);
    for (const { machine } of nodes) machine.volume?.remount();
  }

  /** Running members, ordered by how many partitions each says it leads, most first. */
  async byLeadership(): Promise<NodeId[]> {
    const nodes = this.members.map((id) => this.node(id));
    const counted = nodes
      .filter(({ isRunning, isPaused }) => isRunning && !isPaused)
      .map(async (node) => {
        const status = await node.report();
        const led = status?.partitions.filter(({ leader }) => leader === node.id).length ?? 0;
        return { id: node.id, led };
      });
    return (await Promise.all(counted)).sort((a, b) => b.led - a.led).map(({ id }) => id);
  }

  /** Resolves when all members run, answer and know a leader for each of their partitions. */
  async ready(timeoutMillis = UP_MILLIS_MAX): Promise<ClusterReport> {
    const nodes = this.config.nodes.filter(({ id }) => this.members.includes(id));
    return waitUntilReady({ ...this.config, nodes }, timeoutMillis);
  }

  /**
   * Ends every process by its id, unmounts everything, and deletes the directory unless it should be kept for
   * inspection.
   */
  async dispose(options: { readonly keepDirectory?: boolean } = {}): Promise<void> {
    await this.kill(...this.running);
    await this.network.close();
    for (const { machine } of this.#nodes.values()) machine.volume?.remove();
    process.off('exit', this.#onExit);
    if (options.keepDirectory !== true) await rm(this.directory, { recursive: true, force: true });
  }

  /** This process ends without `dispose`: leave no process behind, paused ones above all, and no mount. */
  #abandon(): void {
    for (const node of this.#nodes.values()) void node.kill();
    for (const { machine } of this.#nodes.values()) machine.volume?.abandon();
  }
}
