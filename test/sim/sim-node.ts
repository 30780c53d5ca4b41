/** One simulated machine: its clocks, its disk, and the process that runs a NodeCore until it crashes. */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { NodeChange, NodeChangeResult } from '../../src/api/node-change.ts';
import type { NodeId } from '../../raft/types.ts';
import { NodeCore } from '../../src/node/node-core.ts';
import type { NodeCoreInit } from '../../src/node/node-core-init.ts';
import type { Fate } from '../../storage/memory-store.ts';
import type { Admission } from '../../src/meta/admission.ts';
import type { PeerFrameType } from '../../src/wire/frame.ts';
import type { Hello, Refusal, Sender } from '../../src/wire/hello.ts';
import { RolledBackError } from '../../raft/errors.ts';
import { type DiskContent, emptyDisk, type TornBatch } from './database.ts';
import { damageOfFlip, damageOfTear } from './disk-image.ts';
import { SimDisk } from './disk.ts';
import type { Boundary, NodeProcess, NodeWorld } from './node-world.ts';
import type { Endpoint } from './network.ts';
import type { Random } from './random.ts';
import { SimClock } from './sim-clock.ts';
import { SimIdentity } from './sim-identity.ts';
import { Violation } from './story.ts';
import { withUnsound } from './unsound-snapshots.ts';

/** How often a stopping node looks how far it is. */
const STOP_LOOK_MILLIS = 10;
/** So long it goes on taking requests when others lead. */
const STOP_LINGER_MILLIS = 300;
/** How often a process looks at the free space while there is too little. */
const SPACE_LOOK_MILLIS = 1_000;

type AllowDone = (answer: AllowAnswer, partition: number) => void;

/** `absent`: not bought yet. `gone`: its directory is lost, or it was switched off for good. */
export type NodeState = 'absent' | 'down' | 'starting' | 'up' | 'gone';

export class SimNode implements Endpoint {
  readonly id: NodeId;
  readonly #world: NodeWorld;
  readonly #random: Random;
  state: NodeState;
  /** Counts processes. */
  life = 0;
  core: NodeProcess | undefined;
  isPaused = false;
  /** Real time at which the last pause ended; while one lasts, the future. */
  pausedAt = 0;
  /** By its own clock: when it was paused, while it reads what came since. */
  #drainedMillis: number | undefined;
  #pausedMillis = 0;
  wallOffsetMillis = 0;
  /** The snapshots it sends are not what they were, and nothing but the state machine can tell. */
  sendsUnsound = false;
  /** A multiple of what the disk usually takes. */
  diskFactor = 1;
  /** Index of the rule table the next process is configured with. */
  table = 0;
  readonly identity: SimIdentity;
  /** Its directory was lost and made anew under its old id: nobody may take it for the one it was. */
  isStranger = false;
  /** Of the process. */
  #admission: Admission | undefined;
  #isExcluded = false;
  readonly clock: SimClock;
  /** Of the last process, in real time. */
  startedAt = 0;
  #disk: SimDisk | undefined;
  #durable: DiskContent = emptyDisk();
  /** Something was written to this directory. */
  #isUsed = false;
  #backlog: (() => void)[] = [];
  #tickIsLate = false;
  #diskFails = false;
  #isShortOfSpace = false;
  #stateBytesMax: number;
  #isClosing = false;
  /** The process before this one did not come to take part. */
  #diedRecovering = false;
  /** What the next start must find. */
  #damage: 'none' | 'flipped' | 'marked' | TornBatch = 'none';
  #recoveryCrashes: { readonly left: number; readonly fate: Fate } | undefined;
  /** The directory is an older copy, and nobody has noticed. */
  #isRolledBack = false;
  /** The process dies at the end of this countdown, in the middle of what it does then. */
  #countdown: { left: number; readonly fate: Fate } | undefined;

  constructor(id: NodeId, world: NodeWorld) {
    this.id = id;
    this.#world = world;
    this.state = this.joins ? 'absent' : 'down';
    this.identity = new SimIdentity(id, world.settings.config);
    this.#random = world.random.fork();
    const { wallSkewMillis, driftPpm, stateBytesMax } = world.settings;
    this.#stateBytesMax = stateBytesMax;
    this.clock = new SimClock({ now: () => world.now(), random: this.#random, driftPpm });
    this.wallOffsetMillis = this.#random.between(-wallSkewMillis, wallSkewMillis);
  }

  /** It is none of those the cluster was created with. */
  get joins(): boolean {
    return this.id > this.#world.settings.nodes;
  }

  /** The machine is there from now on. */
  begin(): void {
    if (this.state !== 'absent') return;
    this.state = 'down';
    this.start();
  }

  get incarnation(): string {
    return this.identity.incarnation;
  }

  get isUp(): boolean {
    return this.state === 'up';
  }

  get isRunning(): boolean {
    return this.state === 'up' && !this.isPaused;
  }

  /** A write is on its way to the disk. */
  get isWriting(): boolean {
    return this.#disk?.isWriting ?? false;
  }

  monotonicMillis(): number {
    return this.clock.millis();
  }

  wallMillis(): number {
    return this.#world.now() + this.wallOffsetMillis;
  }

  /** A new process opens the disk. It takes part when it has read everything. */
  start(): void {
    if (this.state !== 'down') return;
    const world = this.#world;
    const { settings } = world;
    this.state = 'starting';
    this.life += 1;
    const { life } = this;
    this.startedAt = world.now();
    this.clock.restart();
    this.#diskFails = false;
    const disk = new SimDisk(
      this.id,
      {
        diskMillis: () => this.#diskMillis(),
        after: (delay, run) => world.after(delay, run),
        inProcess: (run) => this.#inProcess(life, run),
        damaged: () => {
          this.#diskFails = true;
          this.#damage = 'marked';
        },
        durable: (node, writes) => {
          this.#isUsed = true;
          world.durable(node, writes);
        },
        settling: () => world.settling(),
        completionMillis: world.completionMillis ?? 0,
        reached: (boundary) => this.#reached(life, boundary),
      },
      this.#durable,
    );
    this.#disk = disk;
    if (this.#damage !== 'none') {
      this.#refuseToStart();
      return;
    }
    const crashes = this.#recoveryCrashes;
    if (crashes !== undefined) {
      const { left, fate } = crashes;
      this.#recoveryCrashes = left > 1 ? { left: left - 1, fate } : undefined;
      this.#countdown = { left: this.#random.between(1, settings.config.partitions + 1), fate };
    }
    const inProcess = (run: () => void): void => this.#inProcess(life, run);
    const store =
      world.seams.wrapStore?.(disk, (delay, run) => world.after(delay, () => inProcess(run))) ?? disk;
    world.settling();
    const load = world.load ?? ((init: NodeCoreInit) => NodeCore.load(init));
    const { identity } = this;
    const admission = identity.admission();
    this.#admission = admission;
    this.#isExcluded = false;
    void load({
      config: { ...identity.config, rules: settings.tables[this.table] ?? settings.config.rules },
      nodeId: this.id,
      admission,
      nodesChanged: () => {
        if (this.life === life && this.isUp) world.network.recheck(this.id);
      },
      excluded: ({ reason }) => {
        if (this.life !== life) return;
        world.story.tell(() => `node ${this.id} is out: ${reason}`);
        this.#isExcluded = true;
        world.network.leave(this.id);
      },
      store,
      hash: world.hash,
      doorMillis: () => this.#drainedMillis ?? this.monotonicMillis(),
      clocks: { monotonicMillis: () => this.monotonicMillis(), wallMillis: () => this.wallMillis() },
      random: (bound) => this.#random.below(bound),
      defer: (run) => this.#defer(life, run),
      send: (to, type, payload) => this.#send(life, to, type, payload),
      isConnected: (peer) =>
        world.network.isConnected(this.id, peer) && world.network.isConnected(peer, this.id),
      leaderChanged: (partition, leader) =>
        world.story.tell(() => `node ${this.id}: partition ${partition} is led by ${leader}`),
      clockJudged: (verdict) => {
        if (this.life === life) world.clockJudged?.(this, verdict);
      },
      groupAdded: (group, app, applied) => {
        if (this.life === life) world.groupAdded(this.id, group, app, applied);
      },
      fatal: (error) => this.#fatal(life, error),
      raft: settings.raft,
      ...(settings.queues !== undefined && { queues: settings.queues }),
    }).then(
      (core) => this.#loaded(life, core),
      (error: unknown) => this.#fatal(life, error),
    );
  }

  /** The directory of a process that ended is damaged: the next one must find out and end. */
  #refuseToStart(): void {
    const { life } = this;
    const world = this.#world;
    const refused = (damage: string | undefined): void => {
      if (this.life !== life || this.state !== 'starting') return;
      if (damage === undefined) world.violated(new Violation(`node ${this.id} starts on a damaged disk`));
      world.story.tell(() => `node ${this.id} refuses to start: ${damage ?? ''}`);
      this.dismiss();
    };
    if (this.#damage === 'marked') {
      refused('found before');
      return;
    }
    world.settling();
    const found =
      typeof this.#damage === 'object'
        ? damageOfTear(this.#damage)
        : damageOfFlip(this.#durable, this.#random);
    found.then(refused, (error: unknown) => this.#fatal(life, error));
  }

  /** This node never comes back under its name. */
  dismiss(): void {
    this.crash('lost');
    this.state = 'gone';
    this.#world.directoryLost(this.id);
  }

  #loaded(life: number, core: NodeProcess): void {
    if (this.life !== life || this.state !== 'starting') return;
    this.core = core;
    this.state = 'up';
    this.#lookAtSpace(life);
    this.limitState(this.#stateBytesMax);
    this.#world.network.started(this.id);
    this.#world.story.tell(() => `node ${this.id} is up (life ${life})`);
    this.#tickAfter(life, this.#random.unit() * this.#world.settings.timing.tickMillis);
  }

  /** `delay` by its own clock. */
  #tickAfter(life: number, delay: number): void {
    this.#world.after(delay / this.clock.rate, () => {
      if (this.life !== life || !this.isUp) return;
      this.#tickAfter(life, this.#world.settings.timing.tickMillis);
      this.#world.story.step(2, this.id, 0);
      if (!this.isPaused) this.core?.tick();
      // Timers of a stopped process fire once when it goes on.
      else this.#tickIsLate = true;
    });
  }

  #diskMillis(): number {
    return 0.05 + this.#random.exponential(this.#world.settings.disk.syncMeanMillis) * this.diskFactor;
  }

  #defer(life: number, run: () => void): void {
    const guarded = (): void => this.#inProcess(life, run);
    const { lag } = this.#world.settings;
    if (lag > 0 && this.#random.chance(lag)) this.#world.after(this.#random.exponential(0.5), guarded);
    else this.#world.soon(guarded);
  }

  #inProcess(life: number, run: () => void): void {
    if (this.life !== life || (this.state !== 'up' && this.state !== 'starting')) return;
    if (this.isPaused) this.#backlog.push(run);
    else run();
  }

  /** False if the process died here, or before. */
  #reached(life: number, boundary: Boundary): boolean {
    const lives = (): boolean => this.life === life && (this.state === 'up' || this.state === 'starting');
    if (lives()) this.#world.reached?.(this, boundary);
    if (lives()) this.#countDown();
    return lives();
  }

  #send(life: number, to: NodeId, type: PeerFrameType, payload: Uint8Array): boolean {
    if (this.life !== life || !this.isUp) return false;
    if (!this.#reached(life, 'send')) return false;
    const sent = this.sendsUnsound && type === 'peerMessages' ? withUnsound(payload, this.id, to) : payload;
    this.#world.sending(this.id, to, type, sent);
    return this.#world.network.send(this.id, to, type, sent);
  }

  #fatal(life: number, error: unknown): void {
    if (this.life !== life) return;
    if (error instanceof Violation) this.#world.violated(error);
    else if (error instanceof RolledBackError && this.#isRolledBack) this.#damage = 'marked';
    else if (!this.#diskFails) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#world.violated(new Violation(`node ${this.id} stopped by itself: ${reason}`));
    }
    this.#world.story.tell(() => `node ${this.id} stops: ${String(error)}`);
    this.#world.after(this.#random.unit() * 5, () => {
      if (this.life === life) this.crash('lost');
    });
  }

  /** A client's request arrives. */
  allow(request: AllowRequest, done: AllowDone): void {
    this.#inProcess(this.life, () => this.core?.allow(request, done));
  }

  /** The operator asks this node to change the nodes of the cluster. */
  changeNodes(change: NodeChange, done: (result: NodeChangeResult) => void): void {
    const { life } = this;
    this.#inProcess(life, () =>
      this.core?.changeNodes?.(change, (result) => {
        if (this.life === life) done(result);
      }),
    );
  }

  hello(to: NodeId): Hello | undefined {
    return this.#isExcluded ? undefined : this.#admission?.helloTo(to);
  }

  refusalOf(hello: Hello): Refusal | undefined {
    return this.#admission?.refusalOf(hello);
  }

  introduced(hello: Hello): void {
    this.#inProcess(this.life, () => this.core?.introduced?.(hello));
  }

  welcomedBy(peer: NodeId): void {
    this.#inProcess(this.life, () => this.core?.welcomedBy?.(peer));
  }

  refusedBy(peer: NodeId, refusal: Refusal): void {
    this.#inProcess(this.life, () => this.core?.refusedBy?.(peer, refusal));
  }

  receive(from: Sender, type: PeerFrameType, payload: Uint8Array): void {
    const { life } = this;
    this.#inProcess(life, () => {
      if (this.#reached(life, 'receive')) this.core?.receive(from, type, payload);
    });
  }

  peerLost(peer: NodeId): void {
    this.#inProcess(this.life, () => this.core?.peerLost(peer));
  }

  peerDisconnected(peer: NodeId): void {
    this.#inProcess(this.life, () => this.core?.peerDisconnected(peer));
  }

  crash(fate: Fate): void {
    if (this.state !== 'up' && this.state !== 'starting') return;
    if (this.state === 'starting') {
      this.#world.story.seen('diedRecovering');
      if (this.#diedRecovering) this.#world.story.seen('diedRecoveringTwice');
    }
    this.#diedRecovering = this.state === 'starting';
    this.core?.raft.stop();
    this.core = undefined;
    this.state = 'down';
    this.isPaused = false;
    this.pausedAt = 0;
    this.#backlog = [];
    this.#tickIsLate = false;
    this.#isClosing = false;
    this.#countdown = undefined;
    if (this.#disk !== undefined) {
      this.#durable = this.#disk.crash(fate);
      if (this.#damage === 'none' && this.#disk.isSpoiled) this.#damage = 'flipped';
    }
    this.#disk = undefined;
    this.#world.network.ended(this.id);
    this.#world.ended(this);
  }

  /** The process dies on its own at one of the next moments that others can see: a send, a write, the end of one. */
  dieAfter(steps: number, fate: Fate): void {
    if (this.isUp) this.#countdown = { left: steps, fate };
  }

  #countDown(): void {
    const countdown = this.#countdown;
    if (countdown === undefined) return;
    countdown.left -= 1;
    if (countdown.left > 0) return;
    this.#world.story.tell(() => `node ${this.id} dies in the middle of it`);
    this.crash(countdown.fate);
  }

  /** A graceful stop, as an operator's: others lead first, then what is open is answered, then it takes no more. */
  stop(): void {
    const { core, life } = this;
    if (!this.isRunning || core?.leave === undefined) return;
    core.leave();
    const lingerMillis = this.#random.between(100, STOP_LINGER_MILLIS);
    this.#stopSoon(life, { lingerMillis, openMillis: this.#world.settings.timing.requestDeadlineMillis });
  }

  #stopSoon(life: number, left: { readonly lingerMillis: number; readonly openMillis: number }): void {
    this.#world.after(STOP_LOOK_MILLIS, () =>
      this.#inProcess(life, () => {
        const { core } = this;
        if (core?.hasLeft === true && left.lingerMillis <= 0) this.#isClosing = true;
        if (core?.hasLeft !== true) this.#stopSoon(life, left);
        else if (left.lingerMillis > 0)
          this.#stopSoon(life, { ...left, lingerMillis: left.lingerMillis - STOP_LOOK_MILLIS });
        else if (core.isIdle !== true && left.openMillis > 0)
          this.#stopSoon(life, { ...left, openMillis: left.openMillis - STOP_LOOK_MILLIS });
        else {
          core.router?.close();
          this.crash('kept');
        }
      }),
    );
  }

  /** It takes requests. */
  get isOpen(): boolean {
    return this.isUp && !this.#isClosing;
  }

  refuseProposals(refuse: boolean): void {
    if (this.#isShortOfSpace === refuse) return;
    this.#isShortOfSpace = refuse;
    this.#lookAtSpace(this.life);
  }

  #lookAtSpace(life: number): void {
    this.#inProcess(life, () => this.core?.refuseProposals?.(this.#isShortOfSpace));
    if (!this.#isShortOfSpace) return;
    this.#world.after(SPACE_LOOK_MILLIS, () => {
      if (this.life === life && this.isUp && this.#isShortOfSpace) this.#lookAtSpace(life);
    });
  }

  get stateBytesMax(): number {
    return this.#stateBytesMax;
  }

  /** What it may remember; undefined: as much as at first. */
  limitState(bytesMax: number = this.#world.settings.stateBytesMax): void {
    this.#stateBytesMax = bytesMax;
    this.#inProcess(this.life, () => this.core?.limitState?.(bytesMax));
  }

  /** The next start must refuse this disk. False if nothing was ever written. */
  flipBits(): boolean {
    if (this.state !== 'down' || !this.#isUsed) return false;
    this.#damage = 'flipped';
    return true;
  }

  /** A bit flips under a running process, in a snapshot that is read only when somebody needs it. */
  spoilSnapshot(): boolean {
    return this.isUp && this.#disk?.spoil((among) => this.#random.pick(among)) === true;
  }

  /** Everything that is on disk now. */
  copyDirectory(): DiskContent {
    return this.#disk?.copy() ?? this.#durable;
  }

  /** An older copy takes the place of the directory of a process that ended. */
  putBack(copy: DiskContent): void {
    if (this.state !== 'down') throw new RangeError(`node ${this.id} is ${this.state}`);
    this.#durable = copy;
    this.#isRolledBack = true;
  }

  /** It may come back, or may find that it must not: nobody should count on it. */
  get isDoubtful(): boolean {
    if (this.state === 'gone' || this.isStranger || this.#damage !== 'none' || this.#isRolledBack)
      return true;
    return this.#disk?.isSpoiled === true;
  }

  /** It has again what it had before it was put back. */
  trustDirectory(): void {
    this.#isRolledBack = false;
  }

  /** Of the batch that is on its way only a part reaches the disk; false if none is. The next start must refuse it. */
  tearBatch(): boolean {
    if (!this.isUp || this.#disk?.isWriting !== true) return false;
    const torn = this.#disk.torn((among) => this.#random.below(among));
    if (torn === undefined) return false;
    this.crash('lost');
    this.#damage = torn;
    return true;
  }

  /** The next processes, so many, die while they read the disk. */
  dieRecovering(times: number, fate: Fate): void {
    this.#recoveryCrashes = { left: times, fate };
  }

  /** The directory is gone: this node never comes back. */
  lose(): void {
    this.crash('lost');
    if (this.state === 'absent') return;
    this.#durable = emptyDisk();
    this.#isUsed = false;
    if (this.#world.seams.recreatesDirectories === true) return;
    this.state = 'gone';
  }

  /** The directory is gone, and the node is prepared again under its id. */
  makeAnew(): void {
    this.crash('lost');
    this.#durable = emptyDisk();
    this.#damage = 'none';
    this.#isRolledBack = false;
    this.identity.makeAnew();
    this.isStranger = true;
    this.#world.madeAnew?.(this.id);
  }

  pause(): void {
    if (!this.isUp) return;
    if (!this.isPaused) this.#pausedMillis = this.monotonicMillis();
    this.isPaused = true;
    this.pausedAt = Infinity;
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.pausedAt = this.#world.now();
    const { life } = this;
    const tickFirst = this.#random.chance(0.5);
    const isLate = this.#tickIsLate;
    this.#tickIsLate = false;
    if (isLate && tickFirst) this.core?.tick();
    this.#drainedMillis = this.#pausedMillis;
    for (const run of this.#backlog.splice(0)) this.#inProcess(life, run);
    this.#drainedMillis = undefined;
    if (isLate && !tickFirst) this.core?.tick();
  }

  /** The next write fails, and the process with it. */
  failDisk(fate: Fate): void {
    this.#diskFails = true;
    this.#disk?.failNextWrite(fate);
  }
}
