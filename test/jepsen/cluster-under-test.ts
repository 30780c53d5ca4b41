/**
 * A cluster of real node processes whose every peer link goes through a fault proxy, and whose clocks, event loops
 * and disks can be tampered with from here. Each node has a directory of its own, as on a machine of its own. Knows
 * how to do things to nodes; when and to whom is up to the nemeses.
 */
import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FaultNetwork } from '../../cluster/fault-network.ts';
import {
  type ClusterStatus,
  type NodeProcess,
  startNodeProcess,
  stopNodeProcess,
  waitUntilReady,
} from '../../cluster/processes.ts';
import type { RandomBelow } from '../../raft/core-state.ts';
import type { NodeId } from '../../raft/types.ts';
import { localConfig, nodeDirectory, readCluster, writeCluster } from '../../src/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../../src/cluster-facts.ts';
import type { ClusterConfig, NodeAddress, Timing } from '../../src/config.ts';
import type { Rule } from '../../src/limiter/rules.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { eventually, freePorts } from '../cluster/harness.ts';
import type { Order } from './injected/order.ts';
import { claimDirectory, CLUSTER_PREFIX } from './killed-runs.ts';
import { ARCHIVE, compile, INSIDE, lacks, libfaketime, MUTANT } from './machine.ts';
import { run, Volume } from './volume.ts';

export interface ClusterUnderTestOptions {
  readonly nodes: number;
  readonly rules: readonly Rule[];
  readonly random: RandomBelow;
  /** How many more nodes may join later. Default 2. */
  readonly spares?: number;
  readonly partitions?: number;
  readonly replicas?: number;
  readonly timing?: Timing;
  /** The bug that every node has: see mutants.ts. */
  readonly mutant?: string;
  /** Default 4 MiB: a node on a small volume must be able to work. */
  readonly freeFloorBytes?: number;
  /** Default 4 KiB: snapshots must be taken, started from and installed in every run. */
  readonly snapshotEveryBytes?: number;
  /** How long nodes remember request ids. Default that of a new cluster. */
  readonly requestIdHorizonMillis?: number;
  /**
   * The last node, and one in as many spares, on a small tmpfs, the others each on an ext4 of its own, where the
   * machine can. Default true.
   */
  readonly volumes?: boolean;
}

/** A process that ended. */
export interface NodeExit {
  readonly id: NodeId;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What had been announced with `expectExit`. Undefined: nobody did this, the node failed by itself. */
  readonly expected: string | undefined;
}

/** What a node process says of itself that a status of processes.ts leaves out. */
export interface Status extends Omit<ClusterStatus, 'nodes' | 'self'> {
  readonly nodes: readonly (ClusterStatus['nodes'][number] & { readonly clock: string | null })[];
  readonly self?: { readonly standing: string };
  readonly version?: number;
  readonly settledVersion?: number;
}

interface Machine {
  readonly address: NodeAddress;
  /** Holds cluster.json, the database, the logs. */
  readonly directory: string;
  readonly volume: Volume | undefined;
  role: 'spare' | 'member' | 'retired';
  process: NodeProcess | undefined;
  isPaused: boolean;
  expected: string | undefined;
  wallClock: { readonly offsetMillis: number; readonly rate: number };
  monotonicPpm: number;
}

const SPARES_DEFAULT = 2;
const FREE_FLOOR_BYTES_DEFAULT = 4 << 20;
const SNAPSHOT_EVERY_BYTES_DEFAULT = 4 << 10;
const TMPFS_BYTES = 96 << 20;
const EXT4_BYTES = 256 << 20;
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
    const { nodes, spares = SPARES_DEFAULT, partitions = 8 } = options;
    const directory = await mkdtemp(join(tmpdir(), CLUSTER_PREFIX));
    claimDirectory(directory);
    const base = localConfig({ nodes, partitions, limit: 1, windowMillis: 1_000, basePort: 1 });
    const ports = await freePorts((nodes + spares) * 2);
    const addresses = Array.from({ length: nodes + spares }, (_, i) => ({
      id: i + 1,
      http: { host: '127.0.0.1', port: ports[2 * i] ?? 0 },
      peer: { host: '127.0.0.1', port: ports[2 * i + 1] ?? 0 },
    }));
    const config: ClusterConfig = {
      ...base,
      nodes: addresses,
      rules: {
        ...base.rules,
        rules: options.rules,
        requestIdHorizonMillis: options.requestIdHorizonMillis ?? base.rules.requestIdHorizonMillis,
      },
      replicas: options.replicas ?? base.replicas,
      timing: options.timing ?? base.timing,
      freeFloorBytes: options.freeFloorBytes ?? FREE_FLOOR_BYTES_DEFAULT,
      snapshotEveryBytes: options.snapshotEveryBytes ?? SNAPSHOT_EVERY_BYTES_DEFAULT,
    };
    const network = await FaultNetwork.create(addresses, options.random);
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
      for (const address of addresses) {
        const volume = options.volumes === false ? undefined : volumeFor(directory, address.id, nodes);
        const machine = newMachine({ root: directory, address, volume, isSpare: address.id > nodes });
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
    const node = startNodeProcess(machine.directory, id, ([node = '', ...args]) => [
      'env',
      ...this.#environment(machine),
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

  #environment(machine: Machine): string[] {
    const faketime = libfaketime();
    const libraries = [this.#syncFault, faketime].filter((library) => library !== undefined);
    const orders: Order[] = [{ kind: 'monotonicRate', ppm: machine.monotonicPpm }];
    if (faketime === undefined) orders.push({ kind: 'wallClock', ...machine.wallClock });
    else writeFaketime(machine);
    return [
      ...(libraries.length === 0 ? [] : [`LD_PRELOAD=${libraries.join(' ')}`]),
      `QUORATE_SYNC_FAULT=${join(machine.directory, 'sync-fault')}`,
      `QUORATE_TEST_ORDERS=${JSON.stringify(orders)}`,
      `QUORATE_TEST_ARCHIVE=${join(this.archiveDirectory, `node-${machine.address.id}.jsonl`)}`,
      `QUORATE_TEST_UNREACHABLE=${this.#peerPortsBut(machine).join()}`,
      ...(this.#mutant === undefined ? [] : [`QUORATE_TEST_MUTANT=${this.#mutant}`]),
      `FAKETIME_TIMESTAMP_FILE=${faketimeFile(machine)}`,
      'FAKETIME_NO_CACHE=1',
      // Timers of Node hang when this clock goes back, and the real one never does.
      'DONT_FAKE_MONOTONIC=1',
    ];
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
  async statusFrom(id: NodeId): Promise<Status | undefined> {
    try {
      const response = await fetch(`${this.httpUrl(id)}/v1/cluster`, {
        signal: AbortSignal.timeout(STATUS_MILLIS_MAX),
      });
      return response.ok ? ((await response.json()) as Status) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Members that run, those first that lead most, by what each of them says of itself. */
  async byLeadership(): Promise<NodeId[]> {
    const ids = this.members.filter((id) => this.isRunning(id) && !this.#machine(id).isPaused);
    const counted = ids.map(async (id) => {
      const status = await this.statusFrom(id);
      return { id, led: status?.partitions.filter(({ leader }) => leader === id).length ?? 0 };
    });
    return (await Promise.all(counted)).sort((a, b) => b.led - a.led).map(({ id }) => id);
  }

  /** Resolves when all members run, answer and know a leader for each of their partitions. */
  async ready(timeoutMillis = UP_MILLIS_MAX): Promise<ClusterStatus> {
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

/** What the machine can give node `id` for its database. */
function volumeFor(directory: string, id: NodeId, founders: number): Volume | undefined {
  const path = join(directory, 'volumes', `node-${id}`);
  if (id % founders === 0) return lacks.tmpfs() === undefined ? Volume.tmpfs(path, TMPFS_BYTES) : undefined;
  return lacks.ext4() === undefined ? Volume.ext4(path, EXT4_BYTES) : undefined;
}

function newMachine({
  root,
  address,
  volume,
  isSpare,
}: {
  readonly root: string;
  readonly address: NodeAddress;
  readonly volume: Volume | undefined;
  readonly isSpare: boolean;
}): Machine {
  return {
    address,
    directory: join(root, `machine-${address.id}`),
    volume,
    role: isSpare ? 'spare' : 'member',
    process: undefined,
    isPaused: false,
    expected: undefined,
    wallClock: { offsetMillis: 0, rate: 1 },
    monotonicPpm: 0,
  };
}

/** A node's directory: its peers are where its proxies are, and its log beside those of the others. */
async function createDirectory(
  { address: { id }, directory, volume }: Machine,
  config: ClusterConfig,
  network: FaultNetwork,
): Promise<void> {
  const logs = join(directory, '..', 'logs');
  mkdirSync(logs, { recursive: true });
  mkdirSync(join(directory, '..', 'archive'), { recursive: true });
  mkdirSync(directory);
  symlinkSync(logs, join(directory, 'logs'));
  const database = nodeDirectory(directory, id);
  if (volume !== undefined) symlinkSync(join(volume.path, 'database'), database);
  await bootstrapStore(volume === undefined ? database : join(volume.path, 'database'), {
    nodeId: id,
    incarnation: config.founders.find((founder) => founder.id === id)?.incarnation ?? drawIncarnation(),
    facts: factsOf(config),
  });
  const nodes = config.nodes.map((node) =>
    node.id === id ? node : { ...node, peer: network.addressOf(id, node.id) },
  );
  await writeCluster(directory, { ...config, nodes });
}

function faketimeFile(machine: Machine): string {
  return join(machine.directory, 'faketime');
}

/** Replaced in one step: libfaketime reads it at every look at the clock. */
function writeFaketime(machine: Machine): void {
  const { offsetMillis, rate } = machine.wallClock;
  const path = faketimeFile(machine);
  const seconds = (offsetMillis / 1_000).toFixed(3);
  writeFileSync(`${path}.new`, `${offsetMillis < 0 ? '' : '+'}${seconds} x${rate}\n`);
  renameSync(`${path}.new`, path);
}
