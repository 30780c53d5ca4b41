/**
 * The interface between the driver and the disk: one atomic, synced write at a time for all groups of the node.
 * Implemented in storage/, so that raft/ imports nothing from other rooms.
 */
import type { Entry, GroupId, HardState, LogPosition, SnapshotMeta, StoredGroup } from '../types.ts';

/** Consecutive chunks of a snapshot that is being written. */
export interface StagedChunks {
  /** The index of the snapshot. */
  readonly index: number;
  /** The number of the first of `chunks`. It directly follows the chunks staged before; 0 starts over. */
  readonly first: number;
  readonly chunks: readonly Uint8Array[];
}

/**
 * The changes of one group in one batch. The fields take effect together, in this order: placement and remove, stage,
 * install, entries, compactTo, hardState, snapshot.
 */
export interface GroupWrite {
  readonly group: GroupId;
  /**
   * The version of the cluster's placement under which this node last offered to hold the group, or which removes it.
   * Never decreases. A write with a higher one brings a removed group back, as an empty log with the tombstone's hard
   * state.
   */
  readonly placement?: number;
  /**
   * Deletes the group; `placement` must be above the recorded one. A tombstone stays: that placement and `hardState`,
   * which has a higher term than the stored one and no vote. Such a write contains nothing else.
   */
  readonly remove?: true;
  /** Unchanged if absent. */
  readonly hardState?: HardState;
  /**
   * Contiguous entries to append. They replace all entries of the log from `entries[0].index` on. The first is at most
   * one past the end of the log.
   */
  readonly entries: readonly Entry[];
  /** Compacts the log: entries up to this position are deleted. */
  readonly compactTo?: LogPosition;
  /**
   * Chunks of a snapshot that is not in effect yet, the group's own or the leader's, with a higher index than the
   * current one. Only `readSnapshotChunk` can read them until `snapshot` or `install` names them. A restart forgets
   * them.
   */
  readonly stage?: StagedChunks;
  /** Makes the staged chunks of `snapshot.index` the group's snapshot and deletes the previous one. The log stays. */
  readonly snapshot?: SnapshotMeta;
  /** The same for a snapshot from the leader, which replaces the whole log. */
  readonly install?: SnapshotMeta;
}

/** The database of a node, for all its groups. Any error is final: the store refuses every later write. */
export interface LogStore {
  /**
   * Loads the state and the log of a group; undefined if nothing was ever written for it. Only while no write is
   * running.
   */
  load(group: GroupId): Promise<StoredGroup | undefined>;
  /**
   * Writes the changes of all groups in one atomic batch. Calls `done` once the batch is synced to disk, or with the
   * error, but never before this method returns. Only one write may be in flight, and each group appears at most once.
   */
  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void;
  /** Whether there is garbage to delete. Every write, even an empty one, deletes a little of it. */
  readonly hasGarbage: boolean;
  /**
   * Reads one chunk, counted from 0, of the group's current or staged snapshot with this index; undefined if that was
   * replaced.
   */
  readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}
