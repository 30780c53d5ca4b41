/**
 * One group in a LevelStore: turns a checked GroupWrite into operations of a batch, and keeps the group's record.
 * LevelStore decides when the batch is written.
 */
import type { GroupWrite, StagedChunks } from '../raft/driver/store.ts';
import type { Entry, GroupId, SnapshotMeta } from '../raft/types.ts';
import { encodeChunk, encodeEntry, type RecordContext, type StoredRecord } from './codec.ts';
import type { Operation } from './database.ts';
import { EMPTY_DIGEST, recordHash } from './digest.ts';
import { GroupGarbage } from './garbage.ts';
import { GroupState, type StagedSnapshot } from './group-state.ts';
import type { Mask } from './mask.ts';
import { encodeGroupRecord, type Digest, type GroupRecord } from './records.ts';
import { type MaskedDatabase, readChunks, readLog, type VerifiedGroup } from './verify.ts';

/** The snapshots of a group: in effect and staged. */
export interface Readable {
  readonly snapshot: SnapshotMeta | undefined;
  readonly staged: StagedSnapshot | undefined;
}

/** One group in the database. */
export class LevelGroup {
  readonly group: GroupId;
  /** The state of the group after the batch in flight. */
  readonly state = new GroupState();
  /** The snapshots whose chunks can be read: those of the last batch known to be on disk. */
  readable: Readable = { snapshot: undefined, staged: undefined };
  /**
   * The log as it was read at open, for the caller that loads the group. Dropped when the group is loaded or written.
   */
  entriesRead: readonly Entry[] | undefined = undefined;
  /** Whether the group was ever written. */
  stored = false;
  /** The batch that last wrote this group's record. */
  batch = 0;
  /** This group's contribution to the store's digest. */
  hash: Digest = EMPTY_DIGEST;
  readonly mask: Mask;
  private readonly garbage = new GroupGarbage();
  /** The group was removed, and the space of its deleted keys is not freed yet. */
  private takesSpace = false;

  constructor({ group, mask }: RecordContext) {
    this.group = group;
    this.mask = mask;
  }

  /**
   * Reads and checks a group's log and snapshot.
   *
   * @throws DamageFound
   */
  static async restore(opened: MaskedDatabase, verified: VerifiedGroup): Promise<LevelGroup> {
    const { group, record, hash } = verified;
    const restored = new LevelGroup({ group, mask: opened.mask });
    const { state, garbage } = restored;
    state.hardState = record.hardState;
    state.snapshot = record.snapshot;
    state.placement = record.placement;
    state.removedAt = record.removedAt;
    state.log.reset(record.base, record.baseChain);
    garbage.oldestKey = record.oldestKey;
    garbage.newestKey = record.newestKey;
    restored.noteWritten();
    restored.takesSpace = state.isRemoved;
    restored.batch = record.batch;
    restored.hash = hash;
    const entries: Entry[] = [];
    await readLog(opened, group, record, (entry, chain) => {
      state.log.append(entry.term, entry.timeMillis, chain);
      entries.push(entry);
    });
    restored.entriesRead = entries;
    await readChunks(opened, group, record.snapshot, (index, chunk) =>
      garbage.retireChunks(index, chunk, chunk + 1),
    );
    return restored;
  }

  /** Applies a write that group-check.ts has accepted, and adds its operations. `seal` adds the record later. */
  apply(write: GroupWrite, operations: Operation[]): void {
    this.entriesRead = undefined;
    if (write.placement !== undefined) this.applyPlacement(write.placement, write.remove === true);
    if (write.stage !== undefined) this.applyStage(write.stage, operations);
    if (write.install !== undefined) this.applyInstall(write.install);
    if (write.entries.length > 0) this.applyEntries(write.entries, operations);
    if (write.compactTo !== undefined) this.state.log.compactTo(write.compactTo.index);
    if (write.hardState !== undefined) this.state.hardState = write.hardState;
    if (write.snapshot !== undefined) this.applySnapshot(write.snapshot);
  }

  /** The last batch is on disk. */
  noteWritten(): void {
    this.stored = true;
    this.readable = { snapshot: this.state.snapshot, staged: this.state.staged };
  }

  /** Whether there are keys to delete. */
  get hasGarbage(): boolean {
    return this.garbage.waits(this.deadIndex);
  }

  /** Returns true once, when the last key of a removed group was deleted. */
  takeSpaceToReturn(): boolean {
    if (!this.takesSpace || this.hasGarbage) return false;
    this.takesSpace = false;
    return this.state.isRemoved;
  }

  /** Entries up to this index are garbage: the compacted ones, or all entries of a removed group. */
  private get deadIndex(): number {
    return this.state.isRemoved ? this.garbage.newestKey : this.state.log.baseIndex;
  }

  /** Adds up to `limit` deletions and returns their number. The record must be written in the same batch. */
  collectGarbage(limit: number, operations: Operation[]): number {
    return this.garbage.take(this.group, this.deadIndex, limit, (key) => {
      operations.push({ type: 'del', key });
    });
  }

  /** Adds the group's record as of batch `batch`, and updates `hash`. */
  seal(batch: number, operations: Operation[]): void {
    this.batch = batch;
    const stored = encodeGroupRecord(this.group, this.record());
    this.hash = recordHash(this.group, batch, stored.checksum);
    put(operations, stored);
  }

  record(): GroupRecord {
    const { state, garbage, batch } = this;
    const { log, hardState, snapshot } = state;
    return {
      batch,
      hardState,
      placement: state.placement,
      removedAt: state.removedAt,
      lastIndex: log.lastIndex,
      lastChain: log.chainAt(log.lastIndex),
      base: state.base,
      baseChain: log.chainAt(log.baseIndex),
      oldestKey: garbage.oldestKey,
      newestKey: garbage.newestKey,
      ...(snapshot === undefined ? {} : { snapshot }),
    };
  }

  private applyPlacement(placement: number, isRemoval: boolean): void {
    if (isRemoval) {
      this.retireSnapshot();
      this.retireStaged();
      this.state.remove(placement);
      this.takesSpace = true;
      return;
    }
    // Old entry keys are above the end of the new log. They are ignored, and overwritten or compacted later.
    if (this.state.isRemoved) this.garbage.restart();
    this.state.placement = placement;
  }

  private applyInstall(meta: SnapshotMeta): void {
    this.retireSnapshot();
    if (this.state.staged?.index !== meta.index) this.retireStaged();
    // Old entries above the new base stay on disk. Their hash chain belongs to the old log, never to this one.
    this.state.install(meta, 0);
  }

  private applyEntries(entries: readonly Entry[], operations: Operation[]): void {
    const { log } = this.state;
    log.truncateTo((entries[0]?.index ?? 0) - 1);
    for (const entry of entries) {
      const stored = encodeEntry(this, entry, log.chainAt(log.lastIndex));
      log.append(entry.term, entry.timeMillis, stored.checksum);
      put(operations, stored);
    }
    this.garbage.noteWritten(log.lastIndex);
  }

  private applyStage(stage: StagedChunks, operations: Operation[]): void {
    const { index, first, chunks } = stage;
    if (first === 0) this.retireStaged();
    this.state.stage(stage);
    for (const [i, data] of chunks.entries()) {
      const place = { index, chunk: first + i };
      this.garbage.claimChunk(index, place.chunk);
      put(operations, encodeChunk(this, place, data));
    }
  }

  private applySnapshot(meta: SnapshotMeta): void {
    this.retireSnapshot();
    if (this.state.staged?.index !== meta.index) this.retireStaged();
    this.state.publish(meta);
  }

  private retireSnapshot(): void {
    const { snapshot } = this.state;
    if (snapshot !== undefined) this.garbage.retireChunks(snapshot.index, 0, snapshot.chunkCount);
  }

  private retireStaged(): void {
    const { staged } = this.state;
    if (staged !== undefined) this.garbage.retireChunks(staged.index, 0, staged.chunkCount);
  }
}

/** Adds a put operation for a record. */
export function put(operations: Operation[], record: StoredRecord): void {
  operations.push({ type: 'put', key: record.key, value: record.value });
}
