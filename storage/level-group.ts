/**
 * One group inside a LevelStore: turns a checked GroupWrite into operations of a batch and keeps the group's record.
 * Decides nothing about when or whether the batch is written.
 */
import type { GroupWrite } from '../raft/store.ts';
import type { Entry, GroupId, Snapshot, SnapshotMeta } from '../raft/types.ts';
import { encodeChunk, encodeEntry, type RecordContext, type StoredRecord } from './codec.ts';
import type { Operation } from './database.ts';
import { EMPTY_DIGEST, recordHash } from './digest.ts';
import { GroupGarbage } from './garbage.ts';
import { GroupState } from './group-state.ts';
import type { Mask } from './mask.ts';
import { encodeGroupRecord, type Digest, type GroupRecord } from './records.ts';
import { type MaskedDatabase, readChunks, readLog, type VerifiedGroup } from './verify.ts';

export class LevelGroup {
  readonly group: GroupId;
  /** The group as the batch in flight will leave it. */
  readonly state = new GroupState();
  /** The snapshot whose chunks can be read: as of the last batch known to be on disk. */
  readable: SnapshotMeta | undefined = undefined;
  /** Whether the group was ever written. */
  stored = false;
  /** The batch that last wrote this group's record. */
  batch = 0;
  /** This group's part of the store's digest. */
  hash: Digest = EMPTY_DIGEST;
  readonly mask: Mask;
  private readonly garbage = new GroupGarbage();

  constructor({ group, mask }: RecordContext) {
    this.group = group;
    this.mask = mask;
  }

  /** Reads and checks a group's log and snapshot. Throws DamageFound. */
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
    restored.readable = record.snapshot;
    restored.stored = true;
    restored.batch = record.batch;
    restored.hash = hash;
    await readLog(opened, group, record, (entry, chain) => {
      state.log.append(entry.term, entry.timeMillis, chain);
    });
    await readChunks(
      opened,
      group,
      record.snapshot,
      () => {},
      (index, chunk) => garbage.retireChunks(index, chunk, chunk + 1),
    );
    return restored;
  }

  /** Applies a write that group-check.ts has passed, and adds its operations. The record comes later: seal(). */
  apply(write: GroupWrite, operations: Operation[]): void {
    if (write.placement !== undefined) this.applyPlacement(write.placement, write.remove === true);
    if (write.install !== undefined) this.applyInstall(write.install, operations);
    if (write.entries.length > 0) this.applyEntries(write.entries, operations);
    if (write.compactTo !== undefined) this.state.log.compactTo(write.compactTo.index);
    if (write.hardState !== undefined) this.state.hardState = write.hardState;
    if (write.snapshotChunk !== undefined) this.applyChunk(write.snapshotChunk, operations);
    if (write.snapshot !== undefined) this.applySnapshot(write.snapshot);
  }

  /** Whether keys wait to be deleted. */
  get hasGarbage(): boolean {
    return this.garbage.waits(this.deadIndex);
  }

  /** Entries up to here are not live: what was compacted, or everything. */
  private get deadIndex(): number {
    return this.state.isRemoved ? this.garbage.newestKey : this.state.log.baseIndex;
  }

  /** Adds up to `limit` deletions and returns how many. The record must be written in the same batch. */
  collectGarbage(limit: number, operations: Operation[]): number {
    return this.garbage.take(this.group, this.deadIndex, limit, (key) => {
      operations.push({ type: 'del', key });
    });
  }

  /** Adds the group's record as batch `batch` leaves it, and updates `hash`. */
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
      return;
    }
    // What is left of the old log's keys is above the new one's end: ignored, and overwritten or compacted in time.
    if (this.state.isRemoved) this.garbage.restart();
    this.state.placement = placement;
  }

  private applyInstall(install: Snapshot, operations: Operation[]): void {
    const { meta, chunks } = install;
    this.retireSnapshot();
    this.retireStaged();
    // The old suffix stays on disk above the new base. Its entries chain to the old log, never to this one.
    this.state.install(meta, 0);
    for (const [chunk, data] of chunks.entries()) this.putChunk(meta.index, chunk, data, operations);
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

  private applyChunk(staged: NonNullable<GroupWrite['snapshotChunk']>, operations: Operation[]): void {
    const { index, chunk, data } = staged;
    if (chunk === 0 || this.state.staged?.index !== index) this.retireStaged();
    this.state.stage(index, chunk, data.length);
    this.putChunk(index, chunk, data, operations);
  }

  private applySnapshot(meta: SnapshotMeta): void {
    this.retireSnapshot();
    if (this.state.staged?.index !== meta.index) this.retireStaged();
    this.state.publish(meta);
  }

  private putChunk(index: number, chunk: number, data: Uint8Array, operations: Operation[]): void {
    this.garbage.claimChunk(index, chunk);
    put(operations, encodeChunk(this, { index, chunk }, data));
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

export function put(operations: Operation[], record: StoredRecord): void {
  operations.push({ type: 'put', key: record.key, value: record.value });
}
