/**
 * What the driver needs from a disk: one atomic, synced write at a time for all groups of the node.
 * Declared here and implemented in storage/, so that raft/ imports nothing of ours.
 */
import type { Entry, GroupId, HardState, LogPosition, Snapshot, SnapshotMeta } from './types.ts';

/**
 * Everything one group wants on disk in the next batch. The fields take effect together, in this order: placement and
 * remove, install, entries, compactTo, hardState, snapshot chunks, snapshot.
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
   * One chunk of a snapshot being taken of the local state machine, in order; chunk 0 starts over. Invisible until
   * `snapshot` names it, and forgotten by a restart.
   */
  readonly snapshotChunk?: { readonly index: number; readonly chunk: number; readonly data: Uint8Array };
  /** Makes the staged chunks of `meta.index`, above the current one, the group's snapshot; the old one is dropped. */
  readonly snapshot?: SnapshotMeta;
  /** A snapshot received from the leader: it replaces the whole log and the local snapshot. */
  readonly install?: Snapshot;
}

/** What a group finds on disk when its node starts. */
export interface StoredGroup {
  /** See GroupWrite. 0 if none was recorded. */
  readonly placement: number;
  /** The placement that removed this replica the last time; 0 if none did. */
  readonly removedAt: number;
  /** Only the tombstone is left: hard state and placement. */
  readonly removed: boolean;
  readonly hardState: HardState;
  /** The position before the first entry of the log: (0, 0, 0) until the log is first compacted. */
  readonly base: LogPosition;
  /** Contiguous from `base.index + 1`. */
  readonly entries: readonly Entry[];
  readonly snapshot?: Snapshot;
}

/** One database per node for all groups. Any error is final: the store refuses every later write. */
export interface LogStore {
  /** The state of a group, or undefined if nothing was ever written for it. Reads everything into memory. */
  load(group: GroupId): Promise<StoredGroup | undefined>;
  /**
   * Writes all groups' changes in one atomic batch and calls `done` once it is synced to disk, or with the error.
   * Never calls it before returning. Only one write may be in flight; each group appears at most once.
   */
  write(writes: readonly GroupWrite[], done: (error?: Error) => void): void;
  /** Something waits to be deleted: every write deletes a little of it, also one of nothing else. */
  readonly hasGarbage: boolean;
  /** One chunk of the group's current snapshot; undefined if that snapshot was replaced meanwhile. */
  readSnapshotChunk(group: GroupId, index: number, chunk: number): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}
