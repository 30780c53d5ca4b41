/**
 * What the driver needs from a disk: one atomic, synced write at a time for all groups of the node.
 * Declared here and implemented in storage/, so that raft/ imports nothing of ours.
 */
import type { Entry, GroupId, HardState, LogPosition, SnapshotMeta, StoredGroup } from '../types.ts';

/** Consecutive chunks of a snapshot that is on its way to the disk. */
export interface StagedChunks {
  /** Of the snapshot. */
  readonly index: number;
  /** The number of the first of `chunks`, which follows those staged before; 0 starts over. */
  readonly first: number;
  readonly chunks: readonly Uint8Array[];
}

/**
 * Everything one group wants on disk in the next batch. The fields take effect together, in this order: placement and
 * remove, stage, install, entries, compactTo, hardState, snapshot.
 */
export interface GroupWrite {
  readonly group: GroupId;
  /**
   * The version of the cluster's placement under which this node last offered to hold the group, or which removes it.
   * Never falls. A removed group comes back by a write with a higher one, as an empty log with the tombstone's hard state.
   */
  readonly placement?: number;
  /**
   * Deletes the group, by a `placement` above the one recorded. A tombstone stays: that placement and `hardState`, which
   * has a term above the one stored and no vote. Nothing else may be in this write.
   */
  readonly remove?: true;
  /** Omitted = unchanged. */
  readonly hardState?: HardState;
  /**
   * Contiguous entries to append. They replace whatever the log holds from `entries[0].index` on; the first one
   * is at most one past the end of the log.
   */
  readonly entries: readonly Entry[];
  /** Entries at or below this position are no longer needed; the log now starts after it. */
  readonly compactTo?: LogPosition;
  /**
   * Chunks of a snapshot that is not in effect, of the local state or from the leader, above the current one. Nobody but
   * `readSnapshotChunk` sees them until `snapshot` or `install` names them; a restart forgets them.
   */
  readonly stage?: StagedChunks;
  /** Makes the staged chunks of `snapshot.index` the group's snapshot; the one before is dropped, the log stays. */
  readonly snapshot?: SnapshotMeta;
  /** The same for a snapshot from the leader: it replaces the whole log. */
  readonly install?: SnapshotMeta;
}

/** One database per node for all groups. Any error is final: the store refuses every later write. */
export interface LogStore {
  /** The state of a group and its log, or undefined if nothing was ever written for it. Only while nothing is written. */
  load(group: GroupId): Promise<StoredGroup | undefined>;
  /**
   * Writes all groups' changes in one atomic batch and calls `done` once it is synced to disk, or with the error.
   * Never calls it before returning. Only one write may be in flight; each group appears at most once.
   */
  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void;
  /** Something waits to be deleted: every write deletes a little of it, also one of nothing else. */
  readonly hasGarbage: boolean;
  /**
   * One chunk of the group's current snapshot, or of the one being staged, whichever has this index; undefined if that was
   * replaced meanwhile.
   */
  readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}
