/**
 * A cluster of real node processes whose every peer link goes through a fault proxy, and whose clocks, event loops
 * and disks can be tampered with from here. Each node has a directory of its own, as on a machine of its own. Knows
 * how to do things to nodes; when and to whom is up to the nemeses.
 */
import { realpathSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FaultNetwork } from '../../cluster/fault-network.ts';
import { reportFrom, startNodeProcess, stopNodeProcess, waitUntilReady } from '../../cluster/processes.ts';
import type { NodeId } from '../../raft/types.ts';
import { nodeDirectory, readCluster, writeCluster } from '../../src/config/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../../src/config/cluster-facts.ts';
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import type { NodeAddress } from '../../src/api/node-address.ts';
import type { ClusterConfig } from '../../src/config/config.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { eventually } from '../cluster/harness.ts';
import { type ClusterUnderTestOptions, configOf } from './cluster-options.ts';
import type { Order } from './injected/order.ts';
import { claimDirectory, CLUSTER_PREFIX } from './killed-runs.ts';
import { ARCHIVE, compile, INSIDE, lacks, libfaketime, MUTANT } from './machine.ts';
import {
  createDirectory,
  environmentOf,
  type Machine,
  newMachine,
  volumeFor,
  writeFaketime,
} from './node-machine.ts';
import { run, type Volume } from './volume.ts';

/** A process that ended. */
export interface NodeExit {
  readonly id: NodeId;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What had been announced with `expectExit`. Undefined: nobody did this, the node failed by itself. */
  readonly expected: string | undefined;
}

const UP_MILLIS_MAX = 60_000;
const STATUS_MILLIS_MAX = 1_000;

export class ClusterUnderTest {
  readonly directory: string;
  readonly network: FaultNetwork;
  /** As clients see it: real addresses, the spares included. */
  readonly config: ClusterConfig;
  /** All processes that ended, in order. */
  readonly exits: NodeExit[] = [];
  readonly #machines: readonly Machine[];
  readonly #syncFault: string | undefined;
  readonly #mutant: string | undefined;
  readonly #onExit = (): void => this.#abandon();

  private constructor(
    directory: string,
    config: ClusterConfig,
    network: FaultNetwork,
    machines: readonly Machine[],
    syncFault: string | undefined,
    mutant: string | undefined,
  ) {
    this.#mutant = mutant;
    this.directory = directory;
    this.config = config;
    this.network = network;
    this.#machines = machines;
    this.#syncFault = syncFault;
    process.once('exit', this.#onExit);
  }

  /** Creates everything on disk; no node runs yet. */
  static async create(options: ClusterUnderTestOptions): Promise<ClusterUnderTest> {
    const directory = await mkdtemp(join(tmpdir(), CLUSTER_PREFIX));
    claimDirectory(directory);
    const config = await configOf(options);
    const network = await FaultNetwork.create(config.nodes, options.random);
    const machines: Machine[] = [];
    const canCompile = lacks.compiler() === undefined;
    const library = canCompile ? join(directory, 'sync-fault.so') : undefined;
    const { mutant } = options;
    const cluster = new ClusterUnderTest(directory, config, network, machines, library, mutant);
    try {
      if (library !== undefined) {
        compile('sync-fault', library);
        compile('power-cut', join(directory, 'power-cut'));
      }
      for (const address of config.nodes) {
        const volume =
          options.volumes === false ? undefined : volumeFor(directory, address.id, options.nodes);
        const machine = newMachine({ root: directory, address, volume, isSpare: address.id > options.nodes });
        machines.push(machine);
        await createDirectory(machine, config, network);
      }
      return cluster;
    } catch (error) {
      await cluster.dispose();
      throw error;
    }
  }

  get logsDirectory(): string {
    return join(this.directory, 'logs');
  }

  /** All that was ever in the logs of the nodes: see injected/archive.ts. */
  get archiveDirectory(): string {
    return join(this.directory, 'archive');
  }

  /** Members of the cluster, as far as this test has changed them. */
  get members(): NodeId[] {
    return this.#ids(({ role }) => role === 'member');
  }

  get spares(): NodeId[] {
    return this.#ids(({ role }) => role === 'spare');
  }

  /** Those whose process lives, paused or not. */
  get running(): NodeId[] {
    return this.#ids((machine) => machine.process !== undefined);
  }

  /** Those that nobody announced to end. */
  get unexpectedExits(): NodeExit[] {
    return this.exits.filter(({ expected }) => expected === undefined);
  }

  #ids(isWanted: (machine: Machine) => boolean): NodeId[] {
    return this.#machines.filter(isWanted).map(({ address }) => address.id);
  }

  #machine(id: NodeId): Machine {
    const machine = this.#machines.find(({ address }) => address.id === id);
    if (machine === undefined) throw new Error(`there is no node ${id}`);
    return machine;
  }

  /** Where a node really listens. */
  address(id: NodeId): NodeAddress {
    return this.#machine(id).address;
  }

  httpUrl(id: NodeId): string {
    const { host, port } = this.address(id).http;
    return `http://${host}:${port}`;
  }

  /** The file system of a node's own, if it has one. */
  volumeOf(id: NodeId): Volume | undefined {
    return this.#machine(id).volume;
  }

  databaseOf(id: NodeId): string {
    return nodeDirectory(this.#machine(id).directory, id);
  }

  async logOf(id: NodeId): Promise<string> {
    return readFile(join(this.logsDirectory, `node-${id}.log`), 'utf8');
  }

  /** After a change of the members took effect. A retired node's id never comes back. */
  setRole(id: NodeId, role: 'member' | 'retired'): void {
    this.#machine(id).role = role;
  }

  pidOf(id: NodeId): number | undefined {
    return this.#machine(id).process?.child.pid;
  }

  isRunning(id: NodeId): boolean {
    return this.#machine(id).process !== undefined;
  }

  /** Starts the process; it may not be up yet when this returns. */
  start(id: NodeId): void {
    const machine = this.#machine(id);
    if (machine.process !== undefined) throw new Error(`node ${id} runs already`);
    machine.expected = undefined;
    machine.isPaused = false;
    const environment = environmentOf(machine, {
      syncFault: this.#syncFault,
      archiveDirectory: this.archiveDirectory,
      unreachablePorts: this.#peerPortsBut(machine),
      mutant: this.#mutant,
    });
    const node = startNodeProcess(machine.directory, id, ([node = '', ...args]) => [
      'env',
      ...environment,
      node,
      '--import',
      pathToFileURL(INSIDE).href,
      ...(this.#mutant === undefined ? [] : ['--import', pathToFileURL(MUTANT).href]),
      // Behind the mutant, for it loads what that edits.
      '--import',
      pathToFileURL(ARCHIVE).href,
      ...args,
    ]);
    machine.process = node;
    // Orders to a process that just ended.
    node.child.on('error', () => undefined);
    void node.exited.then(({ code, signal }) => {
      machine.process = undefined;
      this.exits.push({ id, code, signal, expected: machine.expected });
    });
  }

  /** Where the other nodes really listen: only their proxies lead there. */
  #peerPortsBut(machine: Machine): number[] {
    return this.#machines.filter((other) => other !== machine).map(({ address }) => address.peer.port);
  }

  /** Rewrites the file of a node that does not run. */
  async editFile(id: NodeId, changes: Partial<ClusterConfig>): Promise<void> {
    const { directory } = this.#machine(id);
    const config = await readCluster(directory);
    if (config === undefined) throw new Error(`node ${id} has no file`);
    await writeCluster(directory, { ...config, ...changes });
  }

  /** The database of a node that does not run is another one from now on, under its old id. */
  async makeAnew(id: NodeId): Promise<void> {
    const database = realpathSync(this.databaseOf(id));
    rmSync(database, { recursive: true });
    const facts = factsOf(this.config);
    await bootstrapStore(database, { nodeId: id, incarnation: drawIncarnation(), facts });
  }

  /** Resolves when the node answers HTTP, with true; or when its process ended, with false. */
  async isUp(id: NodeId, timeoutMillis = UP_MILLIS_MAX): Promise<boolean> {
    return this.#isOk(id, '/healthz', timeoutMillis);
  }

  /** The same, when all of its partitions have a leader. */
  async isReady(id: NodeId, timeoutMillis = UP_MILLIS_MAX): Promise<boolean> {
    return this.#isOk(id, '/readyz', timeoutMillis);
  }

  async #isOk(id: NodeId, path: string, timeoutMillis: number): Promise<boolean> {
    return eventually(
      `node ${id} answers ${path}, or ends`,
      async () => {
        if (!this.isRunning(id)) return false;
        try {
          const response = await fetch(`${this.httpUrl(id)}${path}`, {
            signal: AbortSignal.timeout(STATUS_MILLIS_MAX),
          });
          await response.text();
          return response.ok ? true : undefined;
        } catch {
          return undefined;
        }
      },
      timeoutMillis,
    );
  }

  /** Starts what is a member and does not run, and waits until those nodes answer. */
  async startAll(): Promise<void> {
    const stopped = this.members.filter((id) => !this.isRunning(id));
    for (const id of stopped) this.start(id);
    for (const id of stopped) {
      if (!(await this.isUp(id))) throw new Error(`node ${id} does not start; see ${this.logsDirectory}`);
    }
  }

  /** The process may end from now on, and this is why; until it is started again, or undefined is given. */
  expectExit(id: NodeId, reason: string | undefined): void {
    this.#machine(id).expected = reason;
  }

  /** SIGKILL, at the same moment for all of them; resolves when they are gone. */
  async kill(...ids: readonly NodeId[]): Promise<void> {
    const processes = ids.map((id) => {
      this.expectExit(id, 'killed');
      const { process } = this.#machine(id);
      process?.child.kill('SIGKILL');
      return process;
    });
    await Promise.all(processes.map(async (process) => process?.exited));
  }

  /** Asks it to stop. */
  async stop(id: NodeId): Promise<void> {
    const { process } = this.#machine(id);
    this.expectExit(id, 'stopped');
    if (process === undefined) return;
    this.resume(id);
    await stopNodeProcess(process);
  }

  pause(id: NodeId): void {
    const machine = this.#machine(id);
    machine.isPaused = machine.process?.child.kill('SIGSTOP') ?? false;
  }

  resume(id: NodeId): void {
    const machine = this.#machine(id);
    if (machine.isPaused) machine.process?.child.kill('SIGCONT');
    machine.isPaused = false;
  }

  /** Keeps the node's event loop busy. */
  stall(id: NodeId, millis: number): void {
    this.#tell(this.#machine(id), { kind: 'stall', millis });
  }

  /** Sets the node's wall clock, for its later processes too. */
  setWallClock(id: NodeId, offsetMillis: number, rate = 1): void {
    const machine = this.#machine(id);
    machine.wallClock = { offsetMillis, rate };
    if (libfaketime() === undefined) this.#tell(machine, { kind: 'wallClock', offsetMillis, rate });
    else writeFaketime(machine);
  }

  /** Makes the clock that the node measures durations with faster or slower. It never jumps. */
  setMonotonicRate(id: NodeId, ppm: number): void {
    const machine = this.#machine(id);
    machine.monotonicPpm = ppm;
    this.#tell(machine, { kind: 'monotonicRate', ppm });
  }

  #tell(machine: Machine, order: Order): void {
    if (machine.process?.child.connected === true) machine.process.child.send(order, () => undefined);
  }

  /** Orders for the syncs of the node's disk: see native/sync-fault.c. An empty text: the disk works. */
  setSyncFault(id: NodeId, orders: string): void {
    const path = join(this.#machine(id).directory, 'sync-fault');
    if (orders === '') rmSync(path, { force: true });
    else writeFileSync(path, orders);
  }

  /** What was not synced is lost, at the same moment on all of these nodes; they are killed. */
  async cutPower(...ids: readonly NodeId[]): Promise<void> {
    for (const id of ids) this.expectExit(id, 'power cut');
    for (const id of ids) run(join(this.directory, 'power-cut'), this.volumeOf(id)?.path ?? '');
    await this.kill(...ids);
    for (const id of ids) this.volumeOf(id)?.remount();
  }

  /** What one node says about the cluster; undefined if it does not answer. */
  async reportFrom(id: NodeId): Promise<ClusterReport | undefined> {
    return reportFrom(this.httpUrl(id));
  }

  /** Members that run, those first that lead most, by what each of them says of itself. */
  async byLeadership(): Promise<NodeId[]> {
    const ids = this.members.filter((id) => this.isRunning(id) && !this.#machine(id).isPaused);
    const counted = ids.map(async (id) => {
      const report = await this.reportFrom(id);
      return { id, led: report?.partitions.filter(({ leader }) => leader === id).length ?? 0 };
    });
    return (await Promise.all(counted)).sort((a, b) => b.led - a.led).map(({ id }) => id);
  }

  /** Resolves when all members run, answer and know a leader for each of their partitions. */
  async ready(timeoutMillis = UP_MILLIS_MAX): Promise<ClusterReport> {
    const nodes = this.config.nodes.filter(({ id }) => this.members.includes(id));
    return waitUntilReady({ ...this.config, nodes }, timeoutMillis);
  }

  /** Ends every process by its id, frees what was mounted, and deletes the directory unless it is to be looked at. */
  async dispose(options: { readonly keepDirectory?: boolean } = {}): Promise<void> {
    await this.kill(...this.running);
    await this.network.close();
    for (const { volume } of this.#machines) volume?.remove();
    process.off('exit', this.#onExit);
    if (options.keepDirectory !== true) await rm(this.directory, { recursive: true, force: true });
  }

  /** This process ends without `dispose`: leave no process, paused ones above all, and no mount behind. */
  #abandon(): void {
    for (const machine of this.#machines) machine.process?.child.kill('SIGKILL');
    for (const { volume } of this.#machines) volume?.abandon();
  }
}
