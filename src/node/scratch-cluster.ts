/**
 * Three nodes in memory, with a client at each, for `warm-up.ts`: the product's own cores, doors and frames, without sockets and
 * disks. Their clock moves one tick whenever the caller asks for one. They share nothing with the node of the process. The call during
 * which an error happens throws it.
 */
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as nextRound } from 'node:timers/promises';
import { pino } from 'pino';
import type { NodeId } from '../../raft/types.ts';
import { MemoryStore } from '../../storage/memory-store.ts';
import { localConfig } from '../config/cluster-directory.ts';
import { Admission } from '../meta/admission.ts';
import { type Hash32, loadHash32 } from '../partition/hash.ts';
import type { DoorCounts, DoorState } from '../resp/command.ts';
import { COMMAND_TABLE } from '../resp/commands/all.ts';
import { Connection } from '../resp/connection.ts';
import { RESP_LIMITS } from '../resp/door-init.ts';
import { FlushPass } from '../resp/flush-pass.ts';
import { ReadPass } from '../resp/read-pass.ts';
import { Session } from '../resp/session.ts';
import { LoadShedder } from '../shedding/load-shedder.ts';
import { clusterTag, encodeFrame, FrameDecoder } from '../wire/frame.ts';
import { accessOf } from './access.ts';
import { behindDoor, viewOf } from './behind-door.ts';
import { DoorUsage } from './door-usage.ts';
import { NodeCore } from './node-core.ts';
import type { Clocks } from './node-core-init.ts';
import { NodeReadiness } from './readiness.ts';
import { OPEN_REQUESTS_MAX } from './routing.ts';
import { SlowDecisions } from './slow-decisions.ts';

/** After so long it is the turn of whatever else the process has to do. */
const SLICE_MILLIS = 5;
/** So many requests a client sends at once. */
const PIPELINE = 64;
/** So many requests of a pipeline are under more than one limit. */
const WITH_DESCRIPTORS = 2;
/** Few enough that some of what they ask is denied. */
const USERS = 150;
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
  readonly client: ScratchSocket;
}

export class ScratchCluster {
  readonly #config = localConfig({ nodes: 3, partitions: 3, limit: 1, windowMillis: 1_000, basePort: 1 });
  readonly #tag = clusterTag(this.#config.clusterId);
  readonly #logger = pino({ level: 'silent' });
  readonly #millis: () => number;
  readonly #untilMillis: number;
  /** What runs next, in order. */
  #tasks: (() => void)[] = [];
  readonly #nodes: ScratchNode[] = [];
  readonly #counts: DoorCounts = {
    connections: 0,
    rejected: 0,
    commands: 0,
    answers: { granted: 0, denied: 0, invalid: 0, conflict: 0, unavailable: 0 },
  };
  #nowMillis = 1;
  #asked = 0;

  /** @param millis of the process, which say how long a slice lasts, and whether there is time for more */
  constructor(millis: () => number, untilMillis: number) {
    this.#millis = millis;
    this.#untilMillis = untilMillis;
  }

  get hasTime(): boolean {
    return this.#millis() < this.#untilMillis;
  }

  get asked(): number {
    return this.#asked;
  }

  get answers(): DoorCounts['answers'] {
    return this.#counts.answers;
  }

  /** The nodes elect leaders and agree on the rules, if there is time. */
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
  }

  /** One at each node, all answered when this resolves, if there is time. */
  async askPipelines(): Promise<void> {
    for (const { client } of this.#nodes) this.#soon(() => client.emit('data', this.#pipeline()));
    do await this.#tick();
    while (this.hasTime && this.#answered < this.#asked);
  }

  end(): void {
    this.#tasks = [];
    for (const { core, client } of this.#nodes) {
      client.emit('close');
      core.raft.stop();
      core.router.close();
    }
  }

  get #answered(): number {
    return Object.values(this.answers).reduce((sum, count) => sum + count, 0);
  }

  /** Time passes, and what follows from that is done, in slices. */
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
    // However short it was, each time something else of the process may run.
    await nextRound();
  }

  readonly #soon = (task: () => void): void => void this.#tasks.push(task);

  #pipeline(): Buffer {
    let text = '';
    for (let i = 0; i < PIPELINE; i += 1) {
      const user = `user:${(this.#asked * 7) % USERS}`;
      this.#asked += 1;
      text +=
        i < WITH_DESCRIPTORS
          ? commandText('MATCH', '2', 'user', user, 'ip', `10.0.0.${i}`)
          : commandText('ALLOW', user);
    }
    return Buffer.from(text);
  }

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
      doorMillis: clocks.monotonicMillis,
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
    return { core, client: this.#clientOf(core, nodeId, { clocks, shedder }) };
  }

  #clientOf(
    core: NodeCore,
    nodeId: NodeId,
    { clocks, shedder }: { readonly clocks: Clocks; readonly shedder: LoadShedder },
  ): ScratchSocket {
    const readiness = new NodeReadiness({ groups: 1, isFounder: true });
    readiness.started(core);
    const init = { config: this.#config, nodeId };
    const node = behindDoor(
      init,
      {},
      {
        readiness,
        view: viewOf(init, readiness, clocks),
        usage: new DoorUsage(clocks),
        access: accessOf({ configured: [], tokens: () => core.tokens, isBehind: () => false }),
        slow: new SlowDecisions({ ...clocks, logger: this.#logger }),
        shedder,
      },
    );
    const { monotonicMillis } = clocks;
    const socket = new ScratchSocket(this.#soon);
    const session = new Session({ id: 1, address: '', remote: '', local: '', nowMillis: monotonicMillis() });
    const door: DoorState = {
      node,
      version: '',
      monotonicMillis,
      startedMillis: monotonicMillis(),
      port: () => 0,
      connectionsMax: 1,
      kept: { unfinishedBytes: 0, unreadBytes: 0 },
      counts: this.#counts,
      sessions: () => [session],
      commands: COMMAND_TABLE,
    };
    // It listens to its socket.
    void new Connection({
      socket: socket as unknown as Socket,
      session,
      door,
      flushPass: new FlushPass(this.#soon),
      readPass: new ReadPass({ monotonicMillis, atTurnEnd: this.#soon }),
      limits: RESP_LIMITS,
      failed(error) {
        throw error;
      },
    });
    return socket;
  }
}

/** As much of a socket as a connection uses. What is sent to its client is dropped. */
class ScratchSocket extends EventEmitter {
  readonly writableLength = 0;
  readonly destroyed = false;
  readonly #soon: (task: () => void) => void;

  constructor(soon: (task: () => void) => void) {
    super();
    this.#soon = soon;
  }

  write(_bytes: Uint8Array, written: () => void): void {
    this.#soon(written);
  }

  pause(): void {}

  resume(): void {}

  end(): void {}

  destroy(): void {}
}

function commandText(...args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`;
}
