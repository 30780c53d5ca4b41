/**
 * Warms up the process before its node reports that it is ready: it decides a few thousand requests of its own with
 * the code for real ones. Otherwise the first second would run uncompiled code, and most of many simultaneous
 * requests would be refused as too late. Amount and time are bounded, and the node starts even if the warm-up fails.
 */
import type { MonotonicClock } from '../api/clocks.ts';
import type { Logger } from 'pino';
import { setImmediate as nextRound } from 'node:timers/promises';
import type { NodeId } from '../../raft/types.ts';
import { MemoryStore } from '../../storage/memory-store.ts';
import { localConfig } from '../config/cluster-directory.ts';
import { Admission } from '../meta/admission.ts';
import { type Hash32, loadHash32 } from '../partition/hash.ts';
import { LoadShedder } from '../shedding/load-shedder.ts';
import { clusterTag, encodeFrame, FrameDecoder } from '../wire/frame.ts';
import { NodeCore } from './node-core.ts';
import { OPEN_REQUESTS_MAX } from './routing.ts';
import { type ScratchAnswers, ScratchClients } from './scratch-clients.ts';

/**
 * A node that starts alone takes about 1.2 s for this many. Three nodes that start together on two processors then
 * decide 0.3 to 0.45 of their later throughput in their first second, instead of 0.2 to 0.25. With warm nodes it is
 * 0.65 to 0.7, as the load generator starts cold as well.
 */
const REQUESTS = 4_000;
/**
 * Three nodes that start together on two processors need nearly this long. On a busier machine the warm-up is cut
 * short.
 */
const MILLIS_MAX = 3_000;

/** What the warm-up needs. */
export interface WarmUpInit extends MonotonicClock {
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

let warmingUp: Promise<void> | undefined;

/** Warms up the process. Later calls wait for the first one. */
export function warmUpOnce(init: WarmUpInit): Promise<void> {
  warmingUp ??= warmUp(init);
  return warmingUp;
}

/** Never rejects: a node that could not warm up is only slow at first. */
export async function warmUp(init: WarmUpInit): Promise<void> {
  try {
    await decideSome(init);
  } catch (error) {
    init.logger.warn({ err: error }, 'could not warm up: the first requests will take longer');
  }
}

async function decideSome({ logger, monotonicMillis }: WarmUpInit): Promise<void> {
  const startedMillis = monotonicMillis();
  const cluster = new ScratchCluster(monotonicMillis, startedMillis + MILLIS_MAX);
  try {
    await cluster.start();
    while (cluster.asked < REQUESTS && cluster.hasTime) await cluster.ask();
    const millis = Math.round(monotonicMillis() - startedMillis);
    logger.info(
      { ...cluster.answers, millis },
      'warmed up: a limiter in memory answered requests of this process, and was thrown away; nothing was charged',
    );
  } finally {
    await cluster.end();
  }
}

/** After this time the event loop gets a chance to do other work. */
const SLICE_MILLIS = 5;
const RULES = `
rules:
  - { id: user, key: user, windows: { limit: 8, per: minute } }
  - { id: net, key: ip, windows: { limit: 400, per: minute } }
`;
/** The table that a cluster is created with has version 1. */
const RULES_VERSION = 2;
const WALL_MILLIS = 1_700_000_000_000;

interface ScratchNode {
  readonly core: NodeCore;
  readonly clients: ScratchClients;
}

/**
 * Three nodes in this process: the product's own cores, frames and listeners, without disks and without sockets
 * between the nodes. Their clock advances by a tick when the caller says so. They have no data and no connection in
 * common with the real node of the process. Errors are thrown from the call in which they happen.
 */
class ScratchCluster {
  readonly #config = localConfig({ nodes: 3, partitions: 3, limit: 1, windowMillis: 1_000, basePort: 1 });
  readonly #tag = clusterTag(this.#config.clusterId);
  readonly #millis: () => number;
  readonly #untilMillis: number;
  /** Tasks to run next, in order. */
  #tasks: (() => void)[] = [];
  readonly #nodes: ScratchNode[] = [];
  readonly #answers: ScratchAnswers = { granted: 0, denied: 0, others: 0 };
  #nowMillis = 1;
  #asked = 0;

  /** @param millis clock of the process, for the length of slices and the time limit */
  constructor(millis: () => number, untilMillis: number) {
    this.#millis = millis;
    this.#untilMillis = untilMillis;
  }

  /** The time limit has not been reached. */
  get hasTime(): boolean {
    return this.#millis() < this.#untilMillis;
  }

  /** Number of requests sent. */
  get asked(): number {
    return this.#asked;
  }

  /** Number of answers by kind. */
  get answers(): Readonly<ScratchAnswers> {
    return this.#answers;
  }

  /** Elects leaders and changes the rules, as far as the time limit allows. */
  async start(): Promise<void> {
    const hash = await loadHash32();
    for (const { id } of this.#config.nodes) this.#nodes.push(await this.#node(id, hash));
    const cores = this.#nodes.map(({ core }) => core);
    while (this.hasTime && !cores.every(({ isReady }) => isReady)) await this.#tick();
    const change = { table: {}, document: RULES, ifVersion: undefined };
    cores[0]?.change({ type: 'rules', change }, () => undefined);
    const replicas = cores.flatMap(({ partitions }) => [...partitions.values()]);
    while (this.hasTime && !replicas.every(({ ruleTable }) => ruleTable?.version === RULES_VERSION))
      await this.#tick();
    await Promise.all(this.#nodes.map(({ clients }) => clients.connect()));
  }

  /** All clients of all nodes ask once more. Resolves when all are answered, or the time limit is reached. */
  async ask(): Promise<void> {
    for (const { clients } of this.#nodes) this.#asked += clients.ask();
    do await this.#tick();
    while (this.hasTime && this.#answered < this.#asked);
  }

  /** Stops everything. */
  async end(): Promise<void> {
    this.#tasks = [];
    for (const { core } of this.#nodes) {
      core.raft.stop();
      core.router.close();
    }
    await Promise.all(this.#nodes.map(({ clients }) => clients.end()));
  }

  get #answered(): number {
    const { granted, denied, others } = this.#answers;
    return granted + denied + others;
  }

  /** Advances the clock and runs what follows from that, in slices. */
  async #tick(): Promise<void> {
    this.#nowMillis += this.#config.timing.tickMillis;
    for (const { core } of this.#nodes) core.tick();
    let sliceEnds = this.#millis() + SLICE_MILLIS;
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks;
      this.#tasks = [];
      for (const task of tasks) {
        if (!this.hasTime) return;
        task();
        if (this.#millis() < sliceEnds) continue;
        await nextRound();
        sliceEnds = this.#millis() + SLICE_MILLIS;
      }
    }
    // Yield after every tick, however short it was.
    await nextRound();
  }

  readonly #soon = (task: () => void): void => void this.#tasks.push(task);

  async #node(nodeId: NodeId, hash: Hash32): Promise<ScratchNode> {
    const { founders } = this.#config;
    const incarnation = founders.find(({ id }) => id === nodeId)?.incarnation ?? '';
    const decoder = new FrameDecoder(this.#tag);
    const clocks = {
      monotonicMillis: () => this.#nowMillis,
      wallMillis: () => WALL_MILLIS + this.#nowMillis,
    };
    const shedder = new LoadShedder({ ...clocks, openMax: OPEN_REQUESTS_MAX });
    const core = await NodeCore.load({
      config: this.#config,
      nodeId,
      admission: new Admission({ nodeId, incarnation, facts: '', founders }),
      store: new MemoryStore({ schedule: this.#soon }),
      hash,
      clocks,
      shedding: shedder,
      listenerMillis: clocks.monotonicMillis,
      random: (bound) => (nodeId * 7_919) % bound,
      defer: this.#soon,
      gather: this.#soon,
      send: (to, type, payload) => {
        const frame = encodeFrame(type, payload, this.#tag);
        const receiver = this.#nodes[to - 1];
        this.#soon(() =>
          decoder.push(frame, (read) =>
            receiver?.core.peers.receive({ node: nodeId, incarnation }, type, read.payload),
          ),
        );
        return true;
      },
      isConnected: () => true,
      leaderChanged: () => undefined,
      fatal: (error) => {
        throw error;
      },
    });
    const config = this.#config;
    const clients = new ScratchClients(core, {
      config,
      nodeId,
      clocks,
      shedder,
      soon: this.#soon,
      answers: this.#answers,
    });
    return { core, clients };
  }
}
