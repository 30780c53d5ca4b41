/** One simulated machine: its clocks, its directory, and its process, which crashes and starts again. */
import type { AllowAnswer } from '../../src/api/answer.ts';
import type { CustomerRequest } from '../../src/api/customer.ts';
import type { PeekRequest } from '../../src/api/peek.ts';
import type { RefundRequest } from '../../src/api/refund.ts';
import type { AllowRequest } from '../../src/api/request.ts';
import type { DoneWith } from '../../src/api/user-request.ts';
import type { ChangeDone, NodeChange } from '../../src/api/cluster-change.ts';
import type { NodeId } from '../../raft/types.ts';
import type { NodeCore } from '../../src/node/node-core.ts';
import type { Hello, Refusal, Sender } from '../../src/wire/hello.ts';
import type { Fate } from '../../storage/memory-store.ts';
import type { DiskContent } from './database.ts';
import { SimDirectory } from './directory.ts';
import type { NodeWorld } from './node-world.ts';
import type { PeerFrameType } from '../../src/wire/frame.ts';
import type { Endpoint } from './network.ts';
import type { Random } from './random.ts';
import { SimClock, SimWallClock } from './sim-clock.ts';
import { SimIdentity } from './sim-identity.ts';
import { type Countdown, type Machine, SimProcess } from './sim-process.ts';

type AllowDone = (answer: AllowAnswer, partition: number) => void;

/** `absent`: not bought yet. `gone`: its directory is lost, or it was switched off for good. */
export type NodeState = 'absent' | 'down' | 'starting' | 'up' | 'gone';

export class SimNode implements Endpoint, Machine {
  readonly id: NodeId;
  readonly #world: NodeWorld;
  readonly #random: Random;
  #state: 'absent' | 'down' | 'gone';
  #process: SimProcess | undefined;
  /** Counts processes. */
  life = 0;
  readonly wall = new SimWallClock();
  /** The snapshots it sends are damaged, and only the state machine can notice. */
  sendsUnsound = false;
  /** The factors by which faults slow the disk down. */
  readonly #slowness = new Set<{ readonly factor: number }>();
  readonly identity: SimIdentity;
  readonly directory = new SimDirectory();
  /** Its directory was lost and it has a new one under its old id: it is not the node that it was. */
  isStranger = false;
  readonly clock: SimClock;
  /** Start of the last process, in real time. */
  startedAt = 0;
  isLowDisk = false;
  stateBytesMax: number;
  /** The process before this one died before it took part. */
  #diedRecovering = false;
  #recoveryCrashes: { readonly left: number; readonly fate: Fate } | undefined;

  constructor(id: NodeId, world: NodeWorld) {
    this.id = id;
    this.#world = world;
    this.#state = this.joins ? 'absent' : 'down';
    this.identity = new SimIdentity(id, world.settings.config);
    this.#random = world.random.fork();
    const { wallSkewMillis, driftPpm, stateBytesMax } = world.settings;
    this.stateBytesMax = stateBytesMax;
    this.clock = new SimClock({ now: () => world.now(), random: this.#random, driftPpm });
    this.wall.move(this.#random.between(-wallSkewMillis, wallSkewMillis));
  }

  /** It is none of the founding nodes. */
  get joins(): boolean {
    return this.id > this.#world.settings.nodes;
  }

  /** The machine exists from now on. */
  begin(): void {
    if (this.state !== 'absent') return;
    this.#state = 'down';
    this.start();
  }

  get state(): NodeState {
    const { state = this.#state } = this.#process ?? {};
    return state === 'over' ? this.#state : state;
  }

  get core(): NodeCore | undefined {
    return this.#process?.core;
  }

  get incarnation(): string {
    return this.identity.incarnation;
  }

  get isUp(): boolean {
    return this.state === 'up';
  }

  get isPaused(): boolean {
    return this.#process?.backlog.isPaused ?? false;
  }

  /** Real time at which the last pause of this process ended; during a pause, the future. */
  get pausedAt(): number {
    return this.#process?.backlog.pausedAt ?? 0;
  }

  get isRunning(): boolean {
    return this.isUp && !this.isPaused;
  }

  /** It takes requests. */
  get isOpen(): boolean {
    return this.#process?.isOpen ?? false;
  }

  /** A write is on its way to the disk. */
  get isWriting(): boolean {
    return this.#process?.disk.isWriting ?? false;
  }

  monotonicMillis(): number {
    return this.clock.millis();
  }

  wallMillis(): number {
    return this.#world.now() + this.wall.offsetMillis;
  }

  /** A new process opens the disk. It takes part when it has read everything. */
  start(): void {
    if (this.state !== 'down') return;
    this.life += 1;
    this.startedAt = this.#world.now();
    this.clock.restart();
    this.#process = new SimProcess({
      machine: this,
      world: this.#world,
      random: this.#random,
      life: this.life,
      countdown: this.directory.isDamaged ? undefined : this.#drawCountdown(),
    });
    this.#process.start();
  }

  #drawCountdown(): Countdown | undefined {
    if (this.#recoveryCrashes === undefined) return undefined;
    const { left, fate } = this.#recoveryCrashes;
    this.#recoveryCrashes = left > 1 ? { left: left - 1, fate } : undefined;
    return { left: this.#random.between(1, this.#world.settings.config.partitions + 1), fate };
  }

  /** This node never comes back under its name. */
  dismiss(): void {
    this.crash('lost');
    this.#state = 'gone';
    this.#world.directoryLost(this.id);
  }

  /** A client's request arrives. */
  allow(request: AllowRequest, done: AllowDone): void {
    this.inProcess((core) => core.ask(request, done));
  }

  ask<R extends CustomerRequest | PeekRequest | RefundRequest>(request: R, done: DoneWith<R>): void {
    this.inProcess((core) => core.ask(request, done));
  }

  /** The operator asks this node to change the members of the cluster. */
  changeNodes(change: NodeChange, done: ChangeDone): void {
    const { life } = this;
    this.inProcess((core) =>
      core.change({ type: 'nodes', change }, (result) => {
        if (this.life === life) done(result);
      }),
    );
  }

  /** See `Backlog.arrives`. */
  arrives(): number {
    return this.#process?.backlog.arrives() ?? 0;
  }

  /** Runs a step in its process, when that gets to it; never if the process ends before. */
  inProcess(step: (core: NodeCore) => void): void {
    const process = this.#process;
    process?.run(() => {
      if (process.core !== undefined) step(process.core);
    });
  }

  hello(to: NodeId): Hello | undefined {
    return this.#process?.hello(to);
  }

  refusalOf(hello: Hello): Refusal | undefined {
    return this.#process?.refusalOf(hello);
  }

  introduced(hello: Hello): void {
    this.inProcess((core) => core.peers.introduced(hello));
  }

  welcomedBy(peer: NodeId): void {
    this.inProcess((core) => core.peers.welcomedBy(peer));
  }

  refusedBy(peer: NodeId, refusal: Refusal): void {
    this.inProcess((core) => core.peers.refusedBy(peer, refusal));
  }

  receive(from: Sender, type: PeerFrameType, payload: Uint8Array): void {
    this.#process?.receive(from, type, payload);
  }

  peerLost(peer: NodeId): void {
    this.inProcess((core) => core.peers.peerLost(peer));
  }

  peerDisconnected(peer: NodeId): void {
    this.inProcess((core) => core.peers.peerDisconnected(peer));
  }

  crash(fate: Fate): void {
    const process = this.#process;
    if (process === undefined) return;
    const isRecovering = process.state === 'starting';
    if (isRecovering) {
      this.#world.story.seen('diedRecovering');
      if (this.#diedRecovering) this.#world.story.seen('diedRecoveringTwice');
    }
    this.#diedRecovering = isRecovering;
    process.end();
    this.#process = undefined;
    this.directory.content = process.disk.crash(fate);
    if (process.disk.isSpoiled) this.directory.spoil();
    this.#world.network.ended(this.id);
    this.#world.ended(this.id);
  }

  dieAfter(steps: number, fate: Fate): void {
    if (this.isUp) this.#process?.dieAfter(steps, fate);
  }

  /** The next processes, this many, die while they read the disk. */
  dieRecovering(times: number, fate: Fate): void {
    this.#recoveryCrashes = { left: times, fate };
  }

  /** Gracefully, as an operator would. */
  stop(): void {
    if (this.isRunning) this.#process?.stop();
  }

  pause(): void {
    if (this.isUp) this.#process?.backlog.pause();
  }

  resume(): void {
    this.#process?.resume();
  }

  setLowDisk(isLow: boolean): void {
    if (this.isLowDisk === isLow) return;
    this.isLowDisk = isLow;
    this.#process?.inspectDisk();
  }

  /** The size of its state; undefined: the initial one. */
  limitState(bytesMax: number = this.#world.settings.stateBytesMax): void {
    this.stateBytesMax = bytesMax;
    this.#process?.limitState(bytesMax);
  }

  /** A multiple of what the disk usually takes: the largest active factor. */
  get diskFactor(): number {
    return Math.max(1, ...[...this.#slowness].map(({ factor }) => factor));
  }

  /** Returns a function that ends it. */
  slowDisk(factor: number): () => void {
    const slowness = { factor };
    this.#slowness.add(slowness);
    return () => this.#slowness.delete(slowness);
  }

  /** No fault slows the disk down any more, and the current operation ends. */
  healDisk(): void {
    this.#slowness.clear();
    this.#process?.disk.hasten();
  }

  /** The next write fails, and the process with it. */
  failDisk(fate: Fate): void {
    this.#process?.failDisk(fate);
  }

  /** The next start must refuse this disk. False if nothing was ever written. */
  flipBits(): boolean {
    return this.state === 'down' && this.directory.flip();
  }

  /** A bit flips under a running process, in a snapshot that is read only on demand. */
  spoilSnapshot(): boolean {
    return this.isUp && this.#process?.disk.spoil((among) => this.#random.pick(among)) === true;
  }

  /** Everything that is on disk now. */
  copyDirectory(): DiskContent {
    return this.#process?.disk.copy() ?? this.directory.content;
  }

  /** An older copy replaces the directory of a process that ended. */
  putBack(copy: DiskContent): void {
    if (this.state !== 'down') throw new RangeError(`node ${this.id} is ${this.state}`);
    this.directory.putBack(copy);
  }

  /** It may come back, or may find that it must not: it must not be relied on. */
  get isDoubtful(): boolean {
    if (this.state === 'gone' || this.isStranger || this.directory.isDoubtful) return true;
    return this.#process?.disk.isSpoiled === true;
  }

  /** Only a part of the batch in flight reaches the disk; false if there is none. The next start must refuse it. */
  tearBatch(): boolean {
    if (!this.isUp || !this.isWriting) return false;
    const torn = this.#process?.disk.torn((among) => this.#random.below(among));
    if (torn === undefined) return false;
    this.crash('lost');
    this.directory.tear(torn);
    return true;
  }

  /** The directory is gone: this node never comes back. */
  lose(): void {
    this.crash('lost');
    if (this.state === 'absent') return;
    this.directory.lose();
    if (this.#world.seams.recreatesDirectories === true) return;
    this.#state = 'gone';
  }

  /** The directory is gone, and the node is prepared again under its id. */
  makeAnew(): void {
    this.crash('lost');
    this.directory.makeAnew();
    this.identity.makeAnew();
    this.isStranger = true;
    this.#world.madeAnew?.(this.id);
  }
}
