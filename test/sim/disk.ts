/**
 * The disk of a simulated node: the product's store on a database whose writes take virtual time, can be made to fail,
 * and are lost or kept by a crash. Reports to the checker what is durable the moment it is.
 */
import type { GroupWrite, LogStore } from '../../raft/driver/store.ts';
import type { GroupId, NodeId, StoredGroup } from '../../raft/types.ts';
import { DamageFound } from '../../storage/errors.ts';
import type { LevelStore } from '../../storage/level-store.ts';
import type { Fate } from '../../storage/memory-store.ts';
import { type DiskContent, openSimStore, SimDatabase, type TornBatch } from './database.ts';
import type { SpoiledSnapshot } from './disk-image.ts';

export interface DiskWorld {
  /** How long the next operation of this node's disk takes. */
  diskMillis(node: NodeId): number;
  after(delayMillis: number, run: () => void): void;
  /** Runs `run` as this node's process, when it is not paused; never if that process is gone. */
  inProcess(run: () => void): void;
  /** A read found damage: the process must end, and no other may begin here. */
  damaged(): void;
  durable(node: NodeId, writes: readonly GroupWrite[]): void;
  /** A promise is about to be settled: its reactions belong to this step. */
  settling(): void;
  /** From when a write is durable until its process learns of it. */
  readonly completionMillis: number;
  /** The process is at a point where it may die; false if it did. */
  reached(boundary: DiskBoundary): boolean;
}

/**
 * `load`: before a group is read. `write`: a write was handed to the disk and is not durable. `durable`: it is durable,
 * and its process does not know. `delivered`: the process is about to learn of it. `read`: the process is about to get
 * a chunk that it asked for.
 */
export type DiskBoundary = 'load' | 'write' | 'durable' | 'delivered' | 'read';

/** Only a disk that a fault slows down takes this long. */
const SLOW_MILLIS = 400;

/** For callers in a process that is gone. */
const NEVER = new Promise<never>(() => {});

export class SimDisk implements LogStore {
  readonly #node: NodeId;
  readonly #world: DiskWorld;
  readonly #database: SimDatabase;
  /** Undefined until the first group is asked for. */
  #store: LevelStore | undefined;
  /** Per group: the index of the snapshot in effect, as far as this process knows. */
  readonly #snapshots = new Map<GroupId, number>();
  #inFlight: readonly GroupWrite[] | undefined;
  #failing: Fate | undefined;
  /** Its process died, perhaps in the middle of a turn that continues here: nothing of that reaches the disk. */
  #isOver = false;
  /** Slow operations, by the callback for their end. */
  readonly #slow = new Set<() => void>();
  /** Its chunks cannot be read any more. */
  #spoiled: SpoiledSnapshot | undefined;

  constructor(node: NodeId, world: DiskWorld, content: DiskContent) {
    this.#node = node;
    this.#world = world;
    this.#database = new SimDatabase(
      content,
      (complete) => this.#operate(world.diskMillis(node), complete),
      () => world.settling(),
    );
  }

  #operate(millis: number, complete: () => void): void {
    if (millis <= SLOW_MILLIS) return this.#world.after(millis, complete);
    this.#slow.add(complete);
    this.#world.after(millis, () => this.#end(complete));
  }

  #end(complete: () => void): void {
    if (this.#slow.delete(complete)) complete();
  }

  /** The current operations of a slow disk end at once. */
  hasten(): void {
    for (const complete of this.#slow) this.#world.after(1, () => this.#end(complete));
  }

  get hasGarbage(): boolean {
    return this.#store?.hasGarbage ?? false;
  }

  get isWriting(): boolean {
    return this.#inFlight !== undefined;
  }

  async load(group: GroupId): Promise<StoredGroup | undefined> {
    if (!this.#world.reached('load')) return NEVER;
    // Each group is a separate chain of promises.
    this.#world.settling();
    this.#store ??= await openSimStore(this.#database);
    const stored = await this.#store.load(group);
    if (stored?.snapshot !== undefined) this.#snapshots.set(group, stored.snapshot.index);
    return stored;
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    if (this.#isOver) return;
    if (this.#store === undefined) throw new RangeError('a disk must be read before it is written');
    this.#inFlight = writes;
    this.#store.write(writes, (error) => {
      this.#inFlight = undefined;
      if (error === undefined || this.#failing === 'kept') this.#nowDurable(writes);
      if (error !== undefined) this.#failing = 'lost';
      if (this.#world.reached('durable')) this.#complete(() => done(error));
    });
    this.#world.reached('write');
  }

  #nowDurable(writes: readonly GroupWrite[]): void {
    for (const { group, remove, install, snapshot } of writes) {
      const index = (install ?? snapshot)?.index;
      if (remove === true) this.#snapshots.delete(group);
      if (index !== undefined) this.#snapshots.set(group, index);
    }
    this.#world.durable(this.#node, writes);
  }

  #complete(done: () => void): void {
    const { completionMillis } = this.#world;
    const deliver = (): void =>
      this.#world.inProcess(() => {
        if (this.#world.reached('delivered')) done();
      });
    if (completionMillis === 0) deliver();
    else this.#world.after(completionMillis, deliver);
  }

  readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.#world.after(this.#world.diskMillis(this.#node), () =>
        this.#world.inProcess(() => {
          if (!this.#world.reached('read')) return;
          this.#world.settling();
          if (this.#spoiled?.group === group && this.#spoiled.index === index) {
            this.#world.damaged();
            reject(new DamageFound(`chunk ${chunk} of snapshot ${index} of group ${group}`));
            return;
          }
          resolve(this.#store?.readSnapshotChunk(group, index, chunk));
        }),
      );
    });
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }

  /** A bit flips in the snapshot of some group; false if there is none. */
  spoil(pick: (among: readonly SpoiledSnapshot[]) => SpoiledSnapshot): boolean {
    const among = [...this.#snapshots].map(([group, index]) => ({ group, index }));
    if (among.length === 0) return false;
    this.#spoiled = pick(among);
    return true;
  }

  /** The snapshot with the flipped bit is still there. */
  get isSpoiled(): boolean {
    return this.#spoiled !== undefined && this.#snapshots.get(this.#spoiled.group) === this.#spoiled.index;
  }

  /** Everything that is durable now. */
  copy(): DiskContent {
    return this.#database.content;
  }

  /** The contents of the disk with only a part of the batch in flight; undefined if it has no parts. */
  torn(below: (bound: number) => number): TornBatch | undefined {
    return this.#database.torn(below);
  }

  failNextWrite(fate: Fate): void {
    this.#failing = fate;
    this.#database.failNext(fate);
  }

  /** The process dies. Returns what the next one finds. */
  crash(fate: Fate): DiskContent {
    this.#isOver = true;
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    if (inFlight !== undefined && fate === 'kept') this.#nowDurable(inFlight);
    return this.#database.crash(fate);
  }
}
