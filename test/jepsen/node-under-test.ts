/**
 * One node of a cluster under test: its process, and ways to disturb its event loop, clocks, disk and files from
 * outside. The nemeses decide when, and which nodes together.
 */
import type { ClusterReport } from '../../src/api/cluster-report.ts';
import { realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type NodeExit,
  type NodeProcess,
  reportFrom,
  startNodeProcess,
  stopNodeProcess,
} from '../../cluster/processes.ts';
import type { NodeId } from '../../raft/types.ts';
import { readCluster, writeCluster } from '../../src/config/cluster-directory.ts';
import { drawIncarnation, factsOf } from '../../src/config/cluster-facts.ts';
import { type ClusterConfig, ConfigError } from '../../src/config/config.ts';
import { bootstrapStore } from '../../storage/bootstrap-store.ts';
import { eventually } from '../cluster/harness.ts';
import type { Order } from './injected/order.ts';
import { ARCHIVE, INSIDE, libfaketime, MUTANT } from './machine.ts';
import {
  environmentOf,
  type Machine,
  RIGHT_CLOCKS,
  type Surroundings,
  writeFaketime,
} from './node-machine.ts';

/** `retired`: it was a member, and its id is never reused. */
export type Role = 'spare' | 'member' | 'retired';

export interface NodeUnderTestInit {
  readonly machine: Machine;
  readonly role: Role;
  readonly surroundings: Surroundings;
  /** Called for every process that ended, with the announced reason; undefined if none was announced. */
  readonly onExit: (exit: NodeExit, expected: string | undefined) => void;
}

export const UP_MILLIS_MAX = 60_000;
const STATUS_MILLIS_MAX = 1_000;

export class NodeUnderTest {
  readonly machine: Machine;
  /** The state of its membership, as this test has changed it. */
  role: Role;
  readonly #surroundings: Surroundings;
  readonly #onExit: NodeUnderTestInit['onExit'];
  #process: NodeProcess | undefined;
  #isPaused = false;
  #expected: string | undefined;
  #clocks = RIGHT_CLOCKS;

  constructor({ machine, role, surroundings, onExit }: NodeUnderTestInit) {
    this.machine = machine;
    this.role = role;
    this.#surroundings = surroundings;
    this.#onExit = onExit;
  }

  get id(): NodeId {
    return this.machine.address.id;
  }

  get httpUrl(): string {
    const { host, port } = this.machine.address.http;
    return `http://${host}:${port}`;
  }

  get pid(): number | undefined {
    return this.#process?.child.pid;
  }

  /** Its process lives, paused or not. */
  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Starts the process. It may not be up yet when this returns. */
  start(): void {
    if (this.#process !== undefined) throw new Error(`node ${this.id} runs already`);
    this.#expected = undefined;
    this.#isPaused = false;
    const { mutant } = this.#surroundings;
    const environment = environmentOf(this.machine, this.#clocks, this.#surroundings);
    const node = startNodeProcess(this.machine.directory, this.id, ([executable = '', ...args]) => [
      'env',
      ...environment,
      executable,
      '--import',
      pathToFileURL(INSIDE).href,
      ...(mutant === undefined ? [] : ['--import', pathToFileURL(MUTANT).href]),
      // After the mutant, because it loads modules that the mutant edits.
      '--import',
      pathToFileURL(ARCHIVE).href,
      ...args,
    ]);
    this.#process = node;
    // Orders to a process that just ended fail.
    node.child.on('error', () => undefined);
    void node.exited.then((exit) => {
      this.#process = undefined;
      this.#onExit(exit, this.#expected);
    });
  }

  /**
   * Announces that the process may end from now on, and why. It holds until the next start, or until undefined is
   * given.
   */
  expectExit(reason: string | undefined): void {
    this.#expected = reason;
  }

  /** Sends SIGKILL. Resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#expected = 'killed';
    const node = this.#process;
    node?.child.kill('SIGKILL');
    await node?.exited;
  }

  /** Asks it to stop. */
  async stop(): Promise<void> {
    this.#expected = 'stopped';
    if (this.#process === undefined) return;
    this.resume();
    await stopNodeProcess(this.#process);
  }

  pause(): void {
    this.#isPaused = this.#process?.child.kill('SIGSTOP') ?? false;
  }

  resume(): void {
    if (this.#isPaused) this.#process?.child.kill('SIGCONT');
    this.#isPaused = false;
  }

  /** Keeps its event loop busy. */
  stall(millis: number): void {
    this.#say({ kind: 'stall', millis });
  }

  /** Sets its wall clock, for its later processes too. */
  setWallClock(offsetMillis: number, rate = 1): void {
    this.#clocks = { ...this.#clocks, wall: { offsetMillis, rate } };
    if (libfaketime() === undefined) this.#say({ kind: 'wallClock', offsetMillis, rate });
    else writeFaketime(this.machine, this.#clocks.wall);
  }

  /** Makes its monotonic clock faster or slower. It never jumps. */
  setMonotonicRate(ppm: number): void {
    this.#clocks = { ...this.#clocks, monotonicPpm: ppm };
    this.#say({ kind: 'monotonicRate', ppm });
  }

  #say(order: Order): void {
    if (this.#process?.child.connected === true) this.#process.child.send(order, () => undefined);
  }

  /** Orders for the syncs of its disk: see native/sync-fault.c. An empty text: the disk works. */
  setSyncFault(orders: string): void {
    const path = join(this.machine.directory, 'sync-fault');
    if (orders === '') rmSync(path, { force: true });
    else writeFileSync(path, orders);
  }

  /** Rewrites its configuration file while it does not run. */
  async editFile(changes: Partial<ClusterConfig>): Promise<void> {
    const { directory } = this.machine;
    await writeCluster(directory, { ...(await this.#file()), ...changes });
  }

  async #file(): Promise<ClusterConfig> {
    const config = await readCluster(this.machine.directory);
    if (config === undefined) throw new ConfigError(this.machine.directory, 'holds no cluster.json');
    return config;
  }

  /** Gives it a new, empty database under its old id, while it does not run. */
  async makeAnew(): Promise<void> {
    const facts = factsOf(await this.#file());
    const database = realpathSync(this.machine.database);
    rmSync(database, { recursive: true });
    await bootstrapStore(database, { nodeId: this.id, incarnation: drawIncarnation(), facts });
  }

  /** Resolves with true when it answers HTTP, or with false when its process has ended. */
  async isUp(timeoutMillis = UP_MILLIS_MAX): Promise<boolean> {
    return this.#isOk('/healthz', timeoutMillis);
  }

  /** Like `isUp`, but waits until all of its partitions have a leader. */
  async isReady(timeoutMillis = UP_MILLIS_MAX): Promise<boolean> {
    return this.#isOk('/readyz', timeoutMillis);
  }

  async #isOk(path: string, timeoutMillis: number): Promise<boolean> {
    return eventually(
      `node ${this.id} answers ${path}, or ends`,
      async () => {
        if (!this.isRunning) return false;
        return (await this.#get(path)) === undefined ? undefined : true;
      },
      timeoutMillis,
    );
  }

  /** Its report on the cluster; undefined if it does not answer. */
  async report(): Promise<ClusterReport | undefined> {
    return reportFrom(this.httpUrl);
  }

  /** The body of a successful answer, if one comes in time. */
  async #get(path: string): Promise<string | undefined> {
    try {
      const response = await fetch(`${this.httpUrl}${path}`, {
        signal: AbortSignal.timeout(STATUS_MILLIS_MAX),
      });
      const text = await response.text();
      return response.ok ? text : undefined;
    } catch {
      return undefined;
    }
  }
}
