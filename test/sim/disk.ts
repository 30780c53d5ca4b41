/**
 * The disk of a simulated node: a MemoryStore whose writes take virtual time, fail when told to, and are lost or
 * kept by a crash. Tells the checker what is durable the moment it is.
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
  /** The process is about to do something that another can see. True: it died right here instead. */
  dies(): boolean;
  /** A promise is about to be settled: its reactions belong to this step. */
  settling(): void;
}

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

  load(group: GroupId): Promise<StoredGroup | undefined> {
    return this.#store.load(group);
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    if (this.#world.dies()) return;
    this.#inFlight = writes;
    this.#store.write(writes, (error) => {
      this.#inFlight = undefined;
      if (error === undefined || this.#failing === 'kept') this.#world.durable(this.#node, writes);
      if (error !== undefined) this.#failing = 'lost';
      // On disk, and nobody knows.
      if (!this.#world.dies()) this.#world.inProcess(() => done(error));
    });
  }

  readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.#world.after(this.#world.diskMillis(this.#node), () =>
        this.#world.inProcess(() => {
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
