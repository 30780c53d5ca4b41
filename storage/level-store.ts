/**
 * The log store on LevelDB: all groups of a node in one database, with one synced batch in flight at a time. It never
 * retries, repairs or guesses: the first error is final. openStore creates it after it has checked the directory.
 */
import { assert } from '../raft/assert.ts';
import type { GroupWrite, LogStore } from '../raft/driver/store.ts';
import type { Entry, GroupId, SnapshotMeta, StoredGroup } from '../raft/types.ts';
import { checkGroupWrite } from './group-check.ts';
import type { KeyValueDatabase, Operation } from './database.ts';
import { decodeChunk } from './codec.ts';
import { combine } from './digest.ts';
import { DamageFound, StorageDamageError, StoreFailedError } from './errors.ts';
import { allEntries, chunkKey, chunkRange } from './keys.ts';
import type { StagedSnapshot } from './group-state.ts';
import type { StoreIdentity } from './identity.ts';
import { LevelGroup, put, type Readable } from './level-group.ts';
import type { Mask } from './mask.ts';
import { encodeStoreRecord, type Digest } from './records.ts';
import { readLog } from './verify.ts';

/** The maximum number of keys that one write deletes in addition to its own data, to bound the cost of a write. */
export const DELETES_PER_WRITE_MAX = 512;

/** What openStore passes on: an open database and what it read from it. */
export interface OpenedDatabase {
  readonly database: KeyValueDatabase;
  readonly identity: StoreIdentity;
  readonly mask: Mask;
  /** The number of the last batch. */
  readonly batch: number;
  readonly digest: Digest;
  readonly groups: readonly LevelGroup[];
  /** Runs a read of the database. Records damage, so that the next start refuses the directory. */
  read<T>(action: () => Promise<T>): Promise<T>;
  /** Called once by close(), with the last batch known to be on disk, or undefined if a write failed. */
  onClose(batch: number | undefined): Promise<void>;
}

/** The store of one node. See `LogStore` for its methods. */
export class LevelStore implements LogStore {
  /** The owner of this database. */
  readonly identity: StoreIdentity;
  private readonly opened: OpenedDatabase;
  private readonly database: KeyValueDatabase;
  private readonly byId = new Map<GroupId, LevelGroup>();
  private batch: number;
  private digest: Digest;
  private failure: StoreFailedError | undefined = undefined;
  private inFlight = false;
  private closing: Promise<void> | undefined = undefined;
  private onIdle: (() => void) | undefined = undefined;
  /** The compactions, one after the other. */
  private compacting: Promise<void> = Promise.resolve();

  constructor(opened: OpenedDatabase) {
    this.opened = opened;
    this.identity = opened.identity;
    this.database = opened.database;
    this.batch = opened.batch;
    this.digest = opened.digest;
    for (const group of opened.groups) this.byId.set(group.group, group);
  }

  /** The ids of all groups that were ever written, ascending. */
  groups(): GroupId[] {
    const stored = [...this.byId.values()].filter((group) => group.stored);
    return stored.map((group) => group.group).sort((a, b) => a - b);
  }

  /** The term of the group after the last write; 0 if it was never written. */
  termOf(id: GroupId): number {
    return this.byId.get(id)?.state.hardState.term ?? 0;
  }

  /** The number of the last batch, written or in flight. */
  get lastBatch(): number {
    return this.batch;
  }

  get hasGarbage(): boolean {
    for (const group of this.byId.values()) if (group.hasGarbage) return true;
    return false;
  }

  /** Only while no write is in flight. */
  async load(id: GroupId): Promise<StoredGroup | undefined> {
    assert(
      !this.inFlight && this.closing === undefined,
      'a group may be loaded only while the store is open and idle',
    );
    const group = this.byId.get(id);
    if (group === undefined) return undefined;
    const entries = group.entriesRead ?? (await this.readEntries(group));
    group.entriesRead = undefined;
    const { hardState, base, placement, removedAt, isRemoved, snapshot } = group.state;
    const placed = { placement, removedAt, removed: isRemoved };
    return { ...placed, hardState, base, entries, ...(snapshot !== undefined && { snapshot }) };
  }

  private async readEntries(group: LevelGroup): Promise<Entry[]> {
    const entries: Entry[] = [];
    await this.opened.read(() =>
      readLog(this.opened, group.group, group.record(), (entry) => entries.push(entry)),
    );
    return entries;
  }

  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void {
    assert(this.closing === undefined, 'nothing may be written after close()');
    assert(!this.inFlight, 'only one write may be in flight');
    const { failure } = this;
    if (failure !== undefined) {
      queueMicrotask(() => done(failure));
      return;
    }
    const touched = this.check(writes);
    const operations = this.encode(writes, touched);
    this.inFlight = true;
    this.database.syncedBatch(operations, (cause) => {
      if (cause === undefined) this.succeed(touched, done);
      else this.fail(cause, done);
    });
  }

  async readSnapshotChunk(id: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined> {
    const group = this.byId.get(id);
    const source = group === undefined ? undefined : sourceAt(group.readable, index);
    if (group === undefined || source === undefined) return undefined;
    const { chunkCount } = source;
    assert(chunk >= 0 && chunk < chunkCount, 'snapshot {} of group {} has chunk {}', index, id, chunk);
    return this.opened.read(async () => {
      const key = chunkKey(id, index, chunk);
      const value = await this.database.get(key);
      if (value !== undefined) return decodeChunk(group, key, value);
      // A later write, or the one in flight, may have replaced the snapshot. Otherwise the chunk must exist.
      const isSame = sourceAt(group.readable, index) === source && sourceAt(group.state, index) === source;
      if (!isSame) return undefined;
      throw new DamageFound(`chunk ${chunk} of snapshot ${index} of group ${id} is missing`);
    });
  }

  /**
   * Marks the directory as damaged: another part of the node found that data is missing. Every later start refuses it.
   */
  async condemn(damage: string): Promise<void> {
    await this.opened
      .read(() => Promise.reject(new DamageFound(damage)))
      .catch((error: unknown) => {
        if (!(error instanceof StorageDamageError)) throw error;
      });
  }

  /** Waits for the write in flight, then closes the database. Later calls return the same promise. */
  close(): Promise<void> {
    this.closing ??= this.finish();
    return this.closing;
  }

  private async finish(): Promise<void> {
    if (this.inFlight) {
      await new Promise<void>((resolve) => {
        this.onIdle = resolve;
      });
    }
    await this.opened.onClose(this.failure === undefined ? this.batch : undefined);
  }

  /** Checks all writes before any of them changes anything. Returns their groups in the same order. */
  private check(writes: readonly GroupWrite[]): LevelGroup[] {
    const touched: LevelGroup[] = [];
    const seen = new Set<GroupId>();
    for (const write of writes) {
      assert(!seen.has(write.group), 'group {} must appear only once in a write', write.group);
      seen.add(write.group);
      const group =
        this.byId.get(write.group) ?? new LevelGroup({ group: write.group, mask: this.opened.mask });
      checkGroupWrite(group.state, write);
      touched.push(group);
    }
    return touched;
  }

  /** Builds the batch: the writes, some garbage collection, the records of all touched groups, and the seal. */
  private encode(writes: readonly GroupWrite[], touched: LevelGroup[]): Operation[] {
    const operations: Operation[] = [];
    for (const [i, group] of touched.entries()) {
      const write = writes[i];
      assert(write?.group === group.group, 'writes and groups must be in the same order');
      this.byId.set(group.group, group);
      group.apply(write, operations);
    }
    this.collectGarbage(touched, operations);
    this.batch += 1;
    for (const group of touched) {
      this.digest = combine(this.digest, group.hash);
      group.seal(this.batch, operations);
      this.digest = combine(this.digest, group.hash);
    }
    const { batch, digest } = this;
    put(operations, encodeStoreRecord({ batch, digest, groupCount: this.byId.size }));
    return operations;
  }

  /** Adds a bounded number of deletions. Their groups join `touched`, because their records change too. */
  private collectGarbage(touched: LevelGroup[], operations: Operation[]): void {
    let left = DELETES_PER_WRITE_MAX;
    for (const group of this.byId.values()) {
      if (left === 0) return;
      if (!group.hasGarbage) continue;
      left -= group.collectGarbage(left, operations);
      if (!touched.includes(group)) touched.push(group);
    }
  }

  private succeed(touched: readonly LevelGroup[], done: (error?: Error) => void): void {
    for (const group of touched) {
      group.noteWritten();
      if (group.takeSpaceToReturn()) this.returnSpace(group.group);
    }
    this.becomeIdle();
    done();
  }

  /** LevelDB compacts only ranges that are written often, and nothing more is written here. */
  private returnSpace(group: GroupId): void {
    const compact = async (): Promise<void> => {
      for (const range of [chunkRange(group), allEntries(group)]) await this.database.compact(range);
    };
    // If this fails, LevelDB fails the next write as well. close() may come in between.
    this.compacting = this.compacting.then(compact).catch(() => undefined);
  }

  private fail(cause: unknown, done: (error?: Error) => void): void {
    const failure = new StoreFailedError({ cause });
    this.failure = failure;
    this.becomeIdle();
    done(failure);
  }

  private becomeIdle(): void {
    this.inFlight = false;
    this.onIdle?.();
  }
}

/** The snapshot of a group at `index`, in effect or staged. */
function sourceAt({ snapshot, staged }: Readable, index: number): SnapshotMeta | StagedSnapshot | undefined {
  return [snapshot, staged].find((source) => source?.index === index);
}
