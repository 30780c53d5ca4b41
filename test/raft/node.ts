/**
 * A Raft core with a disk in memory, a clock and a state machine. Its writes can be left in flight, it can crash and
 * start again, and all its actions are reported to the invariants. The caller delivers its messages.
 */
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from '../../raft/core-state.ts';
import { RaftCore } from '../../raft/core.ts';
import type { Ready } from '../../raft/ready.ts';
import { GroupClock } from '../../raft/driver/group-clock.ts';
import type { GroupWrite } from '../../raft/driver/store.ts';
import type { Entry, GroupClock as Clock, Message, NodeId, StoredGroup } from '../../raft/types.ts';
import { type DurableGroup, type Fate, type MemoryDisk, MemoryStore } from '../../storage/memory-store.ts';
import type { Invariants, ObservedNode } from './invariants.ts';
import { positionAt } from './log-view.ts';
import { applyTo, EMPTY, type Machine, machineOf, readBack, type Snapshot, snapshotOf } from './machine.ts';

const GROUP = 1;

/** Small numbers, so that tests read well: a heartbeat every 2 ticks, an election after 10 to 20. */
export const TEST_OPTIONS: RaftOptions = { ...RAFT_DEFAULTS, heartbeatTicks: 2, electionTicks: 10 };

/** A group clock of a test may also want calls that the core does not make. */
export interface TestClock extends Clock {
  heard?(term: number, timeMillis: number): void;
}

export interface NodeOptions {
  readonly raft?: Partial<RaftOptions>;
  /** False: writes stay in flight until `sync`. Default true. */
  readonly autoSync?: boolean;
  /** Take a snapshot after this many applied entries, and keep that many before it. Default: never. */
  readonly snapshotEvery?: number;
  readonly keepEntries?: number;
  /** A write takes entries until they cost this much. Default: all there are. */
  readonly writeCostMax?: number;
  readonly newClock?: (monotonicMillis: () => number, wallMillis: () => number) => TestClock;
}

export interface Surroundings {
  readonly options: NodeOptions;
  readonly random: RandomBelow;
  readonly invariants: Invariants;
  /** Real time in milliseconds. */
  readonly now: number;
  post(from: TestNode, message: Message): void;
}

interface Flight {
  readonly ready: Ready | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly compactTo: number;
}

export class TestNode implements ObservedNode {
  readonly id: NodeId;
  readonly #surroundings: Surroundings;
  /** The options that it starts with. */
  readonly #voters: readonly NodeId[];
  /** Real time of the start of the monotonic clock; differs for each life. */
  #bootMillis = 0;
  #core: RaftCore | undefined;
  #clock: TestClock | undefined;
  #store: MemoryStore;
  #complete: (() => void) | undefined;
  #flight: Flight | undefined;
  #disk: MemoryDisk;
  wallOffsetMillis = 0;
  /** Parts per million by which this node's monotonic clock runs fast. */
  driftPpm = 0;
  /** For how long this node's monotonic clock stood still, as that of a paused virtual machine does. */
  pausedMillis = 0;
  machine: Machine = EMPTY;
  /** The entries applied since the last start, without those in a snapshot. */
  applied: Entry[] = [];
  snapshot: Snapshot | undefined;

  constructor(id: NodeId, surroundings: Surroundings, voters: readonly NodeId[], stored?: StoredGroup) {
    this.id = id;
    this.#surroundings = surroundings;
    this.#voters = voters;
    this.#disk = diskOf(stored);
    this.#store = this.#open();
  }

  get isUp(): boolean {
    return this.#core !== undefined;
  }

  get core(): RaftCore {
    if (this.#core === undefined) throw new Error(`node ${this.id} is down`);
    return this.#core;
  }

  get clock(): TestClock {
    if (this.#clock === undefined) throw new Error(`node ${this.id} is down`);
    return this.#clock;
  }

  get isWriting(): boolean {
    return this.#flight !== undefined;
  }

  /** The write in flight. */
  get writing(): Ready | undefined {
    return this.#flight?.ready;
  }

  /** The disk after a crash now that loses the write in flight. */
  get stored(): DurableGroup | undefined {
    return this.#disk.get(GROUP);
  }

  #open(): MemoryStore {
    const schedule = (fn: () => void): void => {
      this.#complete = fn;
    };
    return new MemoryStore({ schedule, disk: this.#disk });
  }

  start(): void {
    const { now, options, random, invariants } = this.#surroundings;
    const { stored } = this;
    this.#bootMillis = now - 1_000 * (1 + random(1_000));
    const monotonic = (): number =>
      (this.#surroundings.now - this.#bootMillis - this.pausedMillis) * (1 + this.driftPpm / 1_000_000);
    const wall = (): number => this.#surroundings.now + this.wallOffsetMillis;
    this.#clock = options.newClock?.(monotonic, wall) ?? new GroupClock(monotonic, wall);
    this.snapshot = stored?.snapshot && { meta: stored.snapshot, chunks: stored.chunks };
    this.machine = this.snapshot === undefined ? EMPTY : machineOf(this.snapshot);
    this.applied = [];
    this.#core = new RaftCore({
      id: this.id,
      voters: this.#voters,
      stored,
      clock: this.#clock,
      random,
      options: { ...TEST_OPTIONS, ...options.raft },
      isPreferred: false,
    });
    invariants.started(this);
  }

  /** The process dies. The write in flight was lost, or had reached the disk. */
  crash(fate: Fate = 'lost'): void {
    this.#end(this.#store.crash(fate));
    this.#surroundings.invariants.diskChanged(this);
  }

  /** Another disk is put in; it starts from that. */
  startFrom(stored: StoredGroup): void {
    this.#end(diskOf(stored));
    this.start();
  }

  #end(disk: MemoryDisk): void {
    this.#disk = disk;
    this.#core = undefined;
    this.#clock = undefined;
    this.#flight = undefined;
    this.#complete = undefined;
    this.#store = this.#open();
  }

  /** Sends every message that need not wait, and starts the next write. */
  pump(): void {
    const isAutomatic = this.#surroundings.options.autoSync ?? true;
    for (let round = 0; ; round += 1) {
      if (round > 1_000) throw new Error(`node ${this.id} always has something more to write`);
      this.send();
      const moved = this.apply().length > 0;
      const wrote = !this.isWriting && this.write();
      if (isAutomatic && this.isWriting) this.complete();
      if (!moved && !wrote) return;
    }
  }

  /** Sends the messages that need no disk. */
  send(): void {
    for (const message of this.core.takeMessages()) this.#surroundings.post(this, message);
  }

  /** Applies the entries that are committed and on its disk. */
  apply(): readonly Entry[] {
    const entries = this.core.applicable(1 << 20);
    for (const entry of entries) {
      this.machine = applyTo(this.machine, entry);
      this.applied.push(entry);
      this.core.appliedTo(entry.index);
      this.#surroundings.invariants.applied(this, entry);
    }
    return entries;
  }

  /** Hands new entries to its disk; returns true if there was anything new, also if it needed no write. */
  write(): boolean {
    const ready = this.core.ready(this.#surroundings.options.writeCostMax);
    if (ready !== undefined && !ready.mustWrite) this.#release({ ready, snapshot: undefined, compactTo: 0 });
    const toWrite = ready?.mustWrite === true ? ready : undefined;
    const snapshot = toWrite?.install === undefined ? this.#snapshotDue() : undefined;
    if (toWrite === undefined && snapshot === undefined) return ready !== undefined;
    const keep = this.#surroundings.options.keepEntries ?? 0;
    this.#begin(toWrite, snapshot, (snapshot?.meta.index ?? 0) - keep);
    return true;
  }

  /** Hands a snapshot of its state to its disk, and forgets the log before it. */
  writeSnapshot(): void {
    const { index } = this.machine;
    this.#begin(undefined, snapshotOf(this.machine, positionAt(this.core, index), this.core.config), index);
  }

  #begin(ready: Ready | undefined, snapshot: Snapshot | undefined, compactTo: number): void {
    if (this.isWriting) throw new Error(`node ${this.id} is writing already`);
    const flight = { ready, snapshot, compactTo: Math.max(this.core.logBase.index, compactTo) };
    this.#flight = flight;
    this.#store.write([this.#groupWrite(flight)], (error) => {
      if (error !== undefined) throw error;
    });
  }

  #groupWrite({ ready, snapshot, compactTo }: Flight): GroupWrite {
    const install = ready?.install?.meta;
    const { meta, chunks = [] } = install === undefined ? { ...snapshot } : readBack(install);
    return {
      group: GROUP,
      entries: ready?.entries ?? [],
      ...(ready !== undefined && { hardState: ready.hardState }),
      ...(meta !== undefined && { stage: { index: meta.index, first: 0, chunks } }),
      ...(install !== undefined && { install }),
      ...(snapshot !== undefined && {
        snapshot: snapshot.meta,
        compactTo: positionAt(this.core, compactTo),
      }),
    };
  }

  #snapshotDue(): Snapshot | undefined {
    const { snapshotEvery } = this.#surroundings.options;
    if (snapshotEvery === undefined) return undefined;
    const { index } = this.machine;
    if (index < (this.snapshot?.meta.index ?? 0) + snapshotEvery) return undefined;
    return snapshotOf(this.machine, positionAt(this.core, index), this.core.config);
  }

  /** The write in flight reaches the disk, and its consequences happen. */
  sync(): void {
    this.complete();
    this.pump();
  }

  /** The write in flight reaches the disk, and messages that waited for it leave. */
  complete(): void {
    const { invariants } = this.#surroundings;
    const flight = this.#flight;
    const complete = this.#complete;
    if (flight === undefined || complete === undefined) throw new Error(`node ${this.id} writes nothing`);
    complete();
    this.#flight = undefined;
    this.#complete = undefined;
    this.#disk = this.#store.disk();
    invariants.diskChanged(this);
    this.#release(flight);
    invariants.observe(this);
  }

  #release({ ready, snapshot, compactTo }: Flight): void {
    if (snapshot !== undefined) {
      this.snapshot = snapshot;
      this.core.compact(compactTo);
    }
    if (ready === undefined) return;
    const { install } = ready;
    if (install !== undefined) {
      this.snapshot = readBack(install.meta);
      this.machine = machineOf(this.snapshot);
      this.#surroundings.invariants.restored(this);
    }
    this.core.advance(ready);
    for (const message of ready.afterSync) if (message.to !== this.id) this.#surroundings.post(this, message);
  }
}

function diskOf(stored: StoredGroup | undefined): MemoryDisk {
  return new Map(stored === undefined ? [] : [[GROUP, { ...stored, chunks: [] }]]);
}
