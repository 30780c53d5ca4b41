/** One process of a simulated machine, from its start to its end: its environment, when it runs, and how it stops. */
import type { NodeId } from '../../raft/types.ts';
import { RolledBackError } from '../../raft/errors.ts';
import type { LogStore } from '../../raft/driver/store.ts';
import type { Fate } from '../../storage/memory-store.ts';
import type { Admission } from '../../src/meta/admission.ts';
import { NodeCore } from '../../src/node/node-core.ts';
import type { NodeCoreInit } from '../../src/node/node-core-init.ts';
import type { Hello, Refusal, Sender } from '../../src/wire/hello.ts';
import type { PeerFrameType } from '../../src/wire/frame.ts';
import { Backlog } from './backlog.ts';
import type { SimDirectory } from './directory.ts';
import { SimDisk } from './disk.ts';
import { loadOf, someShed } from './loads.ts';
import type { Boundary, NodeWorld } from './node-world.ts';
import type { Random } from './random.ts';
import type { SimClock } from './sim-clock.ts';
import type { SimIdentity } from './sim-identity.ts';
import { stopSlowly } from './slow-stop.ts';
import { Violation } from './story.ts';
import { withUnsound } from './unsound-snapshots.ts';

/** For at most this long it continues to take requests after it has handed over. */
const STOP_LINGER_MILLIS = 300;
/** How often a process checks the free space while there is too little. */
const SPACE_CHECK_MILLIS = 1_000;

/** The facts that a process knows about its machine. */
export interface Machine {
  readonly id: NodeId;
  /** Number of the last process. */
  readonly life: number;
  readonly clock: SimClock;
  readonly identity: SimIdentity;
  readonly directory: SimDirectory;
  readonly sendsUnsound: boolean;
  /** A multiple of what the disk usually takes. */
  readonly diskFactor: number;
  readonly isLowDisk: boolean;
  readonly stateBytesMax: number;
  wallMillis(): number;
  crash(fate: Fate): void;
  /** The machine must not come back. */
  dismiss(): void;
}

export interface ProcessInit {
  readonly machine: Machine;
  readonly world: NodeWorld;
  readonly random: Random;
  /** Counts the processes of the machine. */
  readonly life: number;
  /** The process dies at the end of this countdown, in the middle of its work. */
  readonly countdown: Countdown | undefined;
}

export interface Countdown {
  left: number;
  readonly fate: Fate;
}

export class SimProcess {
  readonly #machine: Machine;
  readonly #world: NodeWorld;
  readonly #random: Random;
  readonly life: number;
  readonly disk: SimDisk;
  state: 'starting' | 'up' | 'over' = 'starting';
  core: NodeCore | undefined;
  readonly backlog: Backlog;
  readonly #admission: Admission;
  #isExcluded = false;
  #isClosing = false;
  #diskFails = false;
  #countdown: Countdown | undefined;

  constructor({ machine, world, random, life, countdown }: ProcessInit) {
    this.#machine = machine;
    this.#world = world;
    this.#random = random;
    this.life = life;
    this.#countdown = countdown;
    this.#admission = machine.identity.admission();
    this.backlog = new Backlog({
      now: () => world.now(),
      monotonicMillis: () => machine.clock.millis(),
      random,
      tick: () => this.core?.tick(),
    });
    const { directory } = machine;
    this.disk = new SimDisk(
      machine.id,
      {
        diskMillis: () => 0.05 + random.exponential(world.settings.disk.syncMeanMillis) * machine.diskFactor,
        after: (delay, run) => world.after(delay, run),
        inProcess: (run) => this.run(run),
        damaged: () => {
          this.#diskFails = true;
          directory.mark();
        },
        durable: (node, writes) => {
          directory.written();
          world.durable(node, writes);
        },
        settling: () => world.settling(),
        completionMillis: world.completionMillis ?? 0,
        reached: (boundary) => this.reached(boundary),
      },
      directory.content,
    );
  }

  /** Opens the disk. It takes part when it has read everything. */
  start(): void {
    const world = this.#world;
    if (this.#machine.directory.isDamaged) {
      this.#refuseToStart();
      return;
    }
    const later = (delay: number, run: () => void): void => world.after(delay, () => this.run(run));
    const store = world.seams.wrapStore?.(this.disk, later) ?? this.disk;
    world.settling();
    void NodeCore.load(this.#init(store)).then(
      (core) => this.#loaded(core),
      (error: unknown) => this.#fatal(error),
    );
  }

  #init(store: LogStore): NodeCoreInit {
    const machine = this.#machine;
    const world = this.#world;
    const { id, identity } = machine;
    const { settings, network, story } = world;
    return {
      config: identity.config,
      nodeId: id,
      admission: this.#admission,
      nodesChanged: () => {
        if (this.state === 'up') network.recheck(id);
      },
      excluded: ({ reason }) => {
        if (!this.#isLatest) return;
        story.report(() => `node ${id} ends: ${reason}`);
        this.#isExcluded = true;
        network.leave(id);
      },
      store,
      hash: world.hash,
      listenerMillis: () => this.backlog.listenerMillis,
      clocks: { monotonicMillis: () => machine.clock.millis(), wallMillis: () => machine.wallMillis() },
      random: (bound) => this.#random.below(bound),
      defer: (run) => this.#defer(run),
      gather: (run) => this.#defer(run),
      ...(settings.features.includes('gathering') && {
        load: () => loadOf(settings, id, world.now()),
        leadersGather: (target: NodeId) => story.report(() => `node ${id}: leaders gather on ${target}`),
      }),
      send: (to, type, payload) => this.#send(to, type, payload),
      isConnected: (peer) => network.isConnected(id, peer) && network.isConnected(peer, id),
      leaderChanged: (partition, leader) =>
        story.report(() => `node ${id}: partition ${partition} is led by ${leader}`),
      clockJudged: (verdict) => {
        if (this.#isLatest) world.clockJudged?.(id, verdict);
      },
      groupAdded: (group, app, applied) => {
        if (this.#isLatest) world.groupAdded(id, group, app, applied);
      },
      fatal: (error) => this.#fatal(error),
      raft: settings.raft,
      ...(settings.queues !== undefined && { queues: settings.queues, shedding: someShed() }),
    };
  }

  /** Until another process begins, effects after its end are still its own. */
  get #isLatest(): boolean {
    return this.#machine.life === this.life;
  }

  /** The directory of a process that ended is damaged: this process must find out and end. */
  #refuseToStart(): void {
    const { id, directory } = this.#machine;
    const world = this.#world;
    const refused = (damage: string | undefined): void => {
      if (this.state !== 'starting') return;
      if (damage === undefined) world.violated(new Violation(`node ${id} starts on a damaged disk`));
      world.story.report(() => `node ${id} refuses to start: ${damage ?? ''}`);
      this.#machine.dismiss();
    };
    const found = directory.found(this.#random);
    if (typeof found === 'string') {
      refused(found);
      return;
    }
    world.settling();
    found.then(refused, (error: unknown) => this.#fatal(error));
  }

  #loaded(core: NodeCore): void {
    if (this.state !== 'starting') return;
    const { id, stateBytesMax } = this.#machine;
    this.core = core;
    this.state = 'up';
    this.#world.began?.(id, core);
    this.inspectDisk();
    this.limitState(stateBytesMax);
    this.#world.network.started(id);
    this.#world.story.report(() => `node ${id} is up (life ${this.life})`);
    this.#tickAfter(this.#random.unit() * this.#world.settings.timing.tickMillis);
  }

  /** `delay` by its own clock. */
  #tickAfter(delay: number): void {
    const { id, clock } = this.#machine;
    this.#world.after(delay / clock.rate, () => {
      if (this.state !== 'up') return;
      this.#tickAfter(this.#world.settings.timing.tickMillis);
      this.#world.story.step(2, id, 0);
      this.backlog.tick();
    });
  }

  #defer(run: () => void): void {
    const guarded = (): void => this.run(run);
    const { lag } = this.#world.settings;
    if (lag > 0 && this.#random.chance(lag)) this.#world.after(this.#random.exponential(0.5), guarded);
    else this.#world.soon(guarded);
  }

  /** Runs a step as this process: never if it has ended, and later if it is paused. */
  run(step: () => void): void {
    if (this.state !== 'over') this.backlog.run(step);
  }

  resume(): void {
    this.backlog.resume((step) => this.run(step));
  }

  /** False if the process died here, or before. */
  reached(boundary: Boundary): boolean {
    const lives = (): boolean => this.state !== 'over';
    if (lives()) this.#world.reached?.(this.#machine.id, boundary);
    if (lives()) this.#countDown();
    return lives();
  }

  /** The process dies at one of the next moments that other nodes can notice: a send, a write, the end of a write. */
  dieAfter(steps: number, fate: Fate): void {
    this.#countdown = { left: steps, fate };
  }

  #countDown(): void {
    const countdown = this.#countdown;
    if (countdown === undefined) return;
    countdown.left -= 1;
    if (countdown.left > 0) return;
    this.#world.story.report(() => `node ${this.#machine.id} dies in the middle of it`);
    this.#machine.crash(countdown.fate);
  }

  #send(to: NodeId, type: PeerFrameType, payload: Uint8Array): boolean {
    const { id, sendsUnsound } = this.#machine;
    if (this.state !== 'up') return false;
    if (!this.reached('send')) return false;
    const sent = sendsUnsound && type === 'peerMessages' ? withUnsound(payload, id, to) : payload;
    this.#world.sending(id, to, type, sent);
    return this.#world.network.send(id, to, type, sent);
  }

  receive(from: Sender, type: PeerFrameType, payload: Uint8Array): void {
    this.run(() => {
      if (this.reached('receive')) this.core?.peers.receive(from, type, payload);
    });
  }

  #fatal(error: unknown): void {
    if (!this.#isLatest) return;
    const { id, directory } = this.#machine;
    if (error instanceof Violation) this.#world.violated(error);
    else if (error instanceof RolledBackError && directory.isRolledBack) directory.mark();
    else if (!this.#diskFails) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#world.violated(new Violation(`node ${id} stopped by itself: ${reason}`));
    }
    this.#world.story.report(() => `node ${id} stops: ${String(error)}`);
    this.#world.after(this.#random.unit() * 5, () => {
      if (this.state !== 'over') this.#machine.crash('lost');
    });
  }

  hello(to: NodeId): Hello | undefined {
    return this.#isExcluded ? undefined : this.#admission.helloTo(to);
  }

  refusalOf(hello: Hello): Refusal | undefined {
    return this.#admission.refusalOf(hello);
  }

  /** It takes requests. */
  get isOpen(): boolean {
    return this.state === 'up' && !this.#isClosing;
  }

  stop(): void {
    if (this.core === undefined) return;
    this.core.leave();
    stopSlowly(
      {
        later: (delay, run) => this.#world.after(delay, () => this.run(run)),
        core: () => this.core,
        close: () => {
          this.#isClosing = true;
        },
        end: () => this.#machine.crash('kept'),
      },
      {
        lingerMillis: this.#random.between(100, STOP_LINGER_MILLIS),
        openMillis: this.#world.settings.timing.requestDeadlineMillis,
      },
    );
  }

  inspectDisk(): void {
    const machine = this.#machine;
    this.run(() => this.core?.setLowDisk(machine.isLowDisk));
    if (!machine.isLowDisk) return;
    this.#world.after(SPACE_CHECK_MILLIS, () => {
      if (this.state === 'up' && machine.isLowDisk) this.inspectDisk();
    });
  }

  limitState(bytesMax: number): void {
    this.run(() => this.core?.limitState(bytesMax));
  }

  /** The next write fails, and the process with it. */
  failDisk(fate: Fate): void {
    this.#diskFails = true;
    this.disk.failNextWrite(fate);
  }

  /** Nothing of it runs from now on. */
  end(): void {
    this.core?.raft.stop();
    this.core = undefined;
    this.state = 'over';
  }
}
