/**
 * The disk of a simulated node: a MemoryStore whose writes take virtual time, fail when told to, and are lost or
 * kept by a crash. Tells the checker what is durable the moment it is.
 *
 * A write is lost or kept as a whole. LevelDB puts a batch into one record of its log, under one checksum: one that
 * reached the disk in part is dropped when the log is read. There is no third outcome to simulate.
 */
import type { GroupWrite, LogStore, StoredGroup } from '../../raft/store.ts';
import type { GroupId, NodeId } from '../../raft/types.ts';
import { DamageFound } from '../../storage/errors.ts';
import type { SpoiledSnapshot } from './disk-image.ts';
import { MemoryStore, type Fate, type MemoryDisk } from '../../storage/memory-store.ts';

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
 * `load`: before a group is read. `write`: a write was handed to the disk and is not durable. `durable`: it is, and
 * its process does not know. `delivered`: the process is about to learn. `read`: so it is of a chunk it asked for.
 */
export type DiskBoundary = 'load' | 'write' | 'durable' | 'delivered' | 'read';

/** For whoever waits for a process that is gone. */
const NEVER = new Promise<never>(() => {});

export class SimDisk implements LogStore {
  readonly #node: NodeId;
  readonly #world: DiskWorld;
  readonly #store: MemoryStore;
  #inFlight: readonly GroupWrite[] | undefined;
  #failing: Fate | undefined;
  /** Its chunks cannot be read any more. */
  #spoiled: SpoiledSnapshot | undefined;

  constructor(node: NodeId, world: DiskWorld, disk: MemoryDisk) {
    this.#node = node;
    this.#world = world;
    this.#store = new MemoryStore({
      disk,
      schedule: (complete) => world.after(world.diskMillis(node), complete),
    });
  }

  get hasGarbage(): boolean {
    return this.#store.hasGarbage;
  }

  get isWriting(): boolean {
    return this.#inFlight !== undefined;
  }

  load(group: GroupId): Promise<StoredGroup | undefined> {
    return this.#world.reached('load') ? this.#store.load(group) : NEVER;
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    this.#inFlight = writes;
    this.#store.write(writes, (error) => {
      this.#inFlight = undefined;
      if (error === undefined || this.#failing === 'kept') this.#world.durable(this.#node, writes);
      if (error !== undefined) this.#failing = 'lost';
      if (this.#world.reached('durable')) this.#complete(() => done(error));
    });
    this.#world.reached('write');
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
          resolve(this.#store.readSnapshotChunk(group, index, chunk));
        }),
      );
    });
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  /** A bit flips in the snapshot of some group; undefined if there is none. */
  spoil(pick: (among: readonly SpoiledSnapshot[]) => SpoiledSnapshot): boolean {
    const among = [...this.copy()].flatMap(([group, { snapshot }]) =>
      snapshot === undefined || snapshot.chunks.length === 0 ? [] : [{ group, index: snapshot.meta.index }],
    );
    if (among.length === 0) return false;
    this.#spoiled = pick(among);
    return true;
  }

  /** The snapshot with the flipped bit is still there. */
  isSpoiled(disk?: MemoryDisk): boolean {
    if (this.#spoiled === undefined) return false;
    const { group, index } = this.#spoiled;
    return (disk ?? this.copy()).get(group)?.snapshot?.meta.index === index;
  }

  /** All that is durable now. */
  copy(): MemoryDisk {
    return this.#store.disk();
  }

  failNextWrite(fate: Fate): void {
    this.#failing = fate;
    this.#store.failNextWrite(new Error('simulated disk error'), fate);
  }

  /** The process dies. What the next one finds. */
  crash(fate: Fate): MemoryDisk {
    const inFlight = this.#inFlight;
    this.#inFlight = undefined;
    if (inFlight !== undefined && fate === 'kept') this.#world.durable(this.#node, inFlight);
    return this.#store.crash(fate);
  }
}
