/**
 * The log store in memory, for tests and the simulator. It has the same rules as LevelStore, and can crash at any
 * moment. The given `schedule` decides when a write reaches the disk.
 */
import { assert } from '../raft/assert.ts';
import type { GroupWrite, LogStore } from '../raft/driver/store.ts';
import type { Entry, GroupId, SnapshotMeta, StoredGroup } from '../raft/types.ts';
import { StoreFailedError } from './errors.ts';
import { checkGroupWrite } from './group-check.ts';
import { GroupState } from './group-state.ts';

/** A group with the chunks of its snapshot. */
export interface DurableGroup extends StoredGroup {
  readonly chunks: readonly Uint8Array[];
}

/** The durable data, which survives a crash of the store. Do not change it. */
export type MemoryDisk = ReadonlyMap<GroupId, DurableGroup>;

/** The fate of a write whose outcome was never reported. Both happen on a real disk. */
export type Fate = 'lost' | 'kept';

/** The surroundings of a store in memory. */
export interface MemoryStoreOptions {
  /** Calls `fn` once, later, but not at once. The write in flight is durable from then on. */
  readonly schedule: (fn: () => void) => void;
  /** The disk of an earlier store; empty if absent. */
  readonly disk?: MemoryDisk;
}

interface MemoryGroup {
  readonly state: GroupState;
  /** Contiguous from base + 1. */
  entries: Entry[];
  chunks: readonly Uint8Array[];
  staged: Uint8Array[];
}

interface Flight {
  readonly writes: readonly GroupWrite[];
  readonly done: (error?: Error) => void;
}

/** A store that can crash and fail on demand. See `LogStore` for its other methods. */
export class MemoryStore implements LogStore {
  readonly hasGarbage = false;
  private readonly schedule: (fn: () => void) => void;
  private readonly byId = new Map<GroupId, MemoryGroup>();
  private flight: Flight | undefined = undefined;
  private nextFailure: { readonly cause: Error; readonly fate: Fate } | undefined = undefined;
  private failure: StoreFailedError | undefined = undefined;
  private status: 'open' | 'closing' | 'crashed' = 'open';
  private onIdle: (() => void) | undefined = undefined;

  constructor(options: MemoryStoreOptions) {
    this.schedule = options.schedule;
    for (const [id, stored] of options.disk ?? []) this.byId.set(id, restore(stored));
  }

  /** The ids of all groups that were ever written, ascending. */
  groups(): GroupId[] {
    return [...this.byId.keys()].sort((a, b) => a - b);
  }

  async load(id: GroupId): Promise<StoredGroup | undefined> {
    assert(
      this.status === 'open' && this.flight === undefined,
      'a group may be loaded only while the store is open and idle',
    );
    const group = this.byId.get(id);
    if (group === undefined) return undefined;
    const { chunks: _chunks, ...stored } = durable(group);
    return stored;
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    assert(this.status === 'open', 'nothing may be written to a store that is {}', this.status);
    assert(this.flight === undefined, 'only one write may be in flight');
    const seen = new Set<GroupId>();
    for (const write of writes) {
      assert(!seen.has(write.group), 'group {} must appear only once in a write', write.group);
      seen.add(write.group);
      checkGroupWrite(this.byId.get(write.group)?.state ?? new GroupState(), write);
    }
    const flight = { writes, done };
    this.flight = flight;
    this.schedule(() => {
      // A crash in between has dropped the write.
      if (this.flight === flight) this.complete(flight);
    });
  }

  async readSnapshotChunk(id: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined> {
    const group = this.byId.get(id);
    const chunks =
      group?.state.snapshot?.index === index
        ? group.chunks
        : group?.state.staged?.index === index
          ? group.staged
          : undefined;
    if (chunks === undefined) return undefined;
    assert(chunk >= 0 && chunk < chunks.length, 'snapshot {} of group {} has chunk {}', index, id, chunk);
    return chunks[chunk];
  }

  async close(): Promise<void> {
    if (this.status === 'crashed') return;
    this.status = 'closing';
    if (this.flight === undefined) return;
    await new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
  }

  /**
   * Makes the next write and every later one fail. `fate` decides whether the next write is on disk at the next start.
   */
  failNextWrite(cause: Error, fate: Fate = 'lost'): void {
    this.nextFailure = { cause, fate };
  }

  /**
   * Ends this store like a crash of its process: the write in flight is never answered, and `fate` decides whether it
   * is on disk. Pass the result to a new store to restart.
   */
  crash(fate: Fate = 'lost'): MemoryDisk {
    const { flight } = this;
    this.status = 'crashed';
    this.flight = undefined;
    // After a failed write nothing more reaches the disk.
    if (flight !== undefined && fate === 'kept' && this.failure === undefined) this.apply(flight.writes);
    return this.disk();
  }

  /** A copy of the durable data now. Later writes do not change it. */
  disk(): MemoryDisk {
    const disk = new Map<GroupId, DurableGroup>();
    for (const [id, group] of this.byId) disk.set(id, durable(group));
    return disk;
  }

  private complete(flight: Flight): void {
    const { nextFailure } = this;
    if (this.failure === undefined && nextFailure !== undefined) {
      this.failure = new StoreFailedError({ cause: nextFailure.cause });
      if (nextFailure.fate === 'kept') this.apply(flight.writes);
    } else if (this.failure === undefined) {
      this.apply(flight.writes);
    }
    this.flight = undefined;
    this.onIdle?.();
    flight.done(this.failure);
  }

  private apply(writes: readonly GroupWrite[]): void {
    for (const write of writes) {
      let group = this.byId.get(write.group);
      if (group === undefined) {
        group = { state: new GroupState(), entries: [], chunks: [], staged: [] };
        this.byId.set(write.group, group);
      }
      applyWrite(group, write);
    }
  }
}

/** Applies the fields in the order given in raft/driver/store.ts. */
function applyWrite(group: MemoryGroup, write: GroupWrite): void {
  const { state } = group;
  const { placement, remove, stage, install, entries, compactTo, hardState, snapshot } = write;
  if (remove === true) {
    state.remove(placement ?? 0);
    group.entries = [];
    group.chunks = [];
    group.staged = [];
  } else if (placement !== undefined) {
    state.placement = placement;
  }
  if (stage !== undefined) {
    if (stage.first === 0) group.staged = [];
    state.stage(stage);
    for (const data of stage.chunks) group.staged.push(data.slice());
  }
  if (install !== undefined) {
    promoteStaged(group, install);
    state.install(install, 0);
    group.entries = [];
  }
  const first = entries[0];
  if (first !== undefined) {
    state.log.truncateTo(first.index - 1);
    group.entries.length = first.index - 1 - state.log.baseIndex;
    for (const entry of entries) {
      state.log.append(entry.term, entry.timeMillis, 0);
      group.entries.push({ ...entry, data: entry.data.slice() });
    }
  }
  if (compactTo !== undefined) {
    group.entries = group.entries.slice(compactTo.index - state.log.baseIndex);
    state.log.compactTo(compactTo.index);
  }
  if (hardState !== undefined) state.hardState = { ...hardState };
  if (snapshot !== undefined) {
    promoteStaged(group, snapshot);
    state.publish(snapshot);
  }
}

function promoteStaged(group: MemoryGroup, { index }: SnapshotMeta): void {
  group.chunks = group.state.staged?.index === index ? group.staged : [];
  group.staged = [];
}

function restore(stored: DurableGroup): MemoryGroup {
  const state = new GroupState();
  state.hardState = stored.hardState;
  state.placement = stored.placement;
  state.removedAt = stored.removedAt;
  state.snapshot = stored.snapshot;
  state.log.reset(stored.base, 0);
  for (const { term, timeMillis } of stored.entries) state.log.append(term, timeMillis, 0);
  return { state, entries: [...stored.entries], chunks: stored.chunks, staged: [] };
}

function durable(group: MemoryGroup): DurableGroup {
  const { state, entries, chunks } = group;
  const { hardState, base, placement, removedAt, isRemoved, snapshot } = state;
  return {
    placement,
    removedAt,
    removed: isRemoved,
    hardState,
    base,
    entries: [...entries],
    ...(snapshot !== undefined && { snapshot }),
    chunks,
  };
}
