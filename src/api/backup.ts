/**
 * The types with which a listener reads a backup from its node: the state of one group, as a snapshot on disk, chunk
 * by chunk. Also the header and the bounds of that transfer.
 */

/** Describes one snapshot: the state of the group after log entry `index` of `term`, at group time `timeMillis`. */
export interface BackupSnapshot {
  readonly clusterId: string;
  /**
   * The number of partitions of the cluster, and the name of the function that maps keys to them. Both are fixed when
   * the cluster is created.
   */
  readonly partitions: number;
  readonly hash: string;
  /** 0 is the cluster's own group (group 0). `p + 1` is the group of partition `p`. */
  readonly group: number;
  readonly index: number;
  readonly term: number;
  readonly timeMillis: number;
  readonly chunkCount: number;
  readonly byteLength: number;
}

/**
 * Why a node gives no backup:
 *
 * - `starting`: the node has loaded no group yet
 * - `noSuchGroup`: no node has this group
 * - `notLeader`: another node leads the group, or no node does; ask the other nodes
 * - `busy`: the node is already sending another backup
 */
export type NoBackup = 'starting' | 'noSuchGroup' | 'notLeader' | 'busy';

/** An open snapshot. The caller must close it once. */
export interface OpenBackup {
  readonly snapshot: BackupSnapshot;
  /**
   * Reads chunk 0 to `chunkCount - 1`. Undefined: the snapshot was replaced in the meantime; start again. Rejects if
   * the disk fails.
   */
  readonly read: (chunk: number) => Promise<Uint8Array | undefined>;
  readonly close: () => void;
}

/** The answer to a request for a backup. */
export type BackupStarted =
  | { readonly ok: true; readonly backup: OpenBackup }
  | { readonly ok: false; readonly reason: NoBackup };

/** Called once, or never if the node stops first. */
export type BackupDone = (started: BackupStarted) => void;

/**
 * The name of the HTTP header that carries the `BackupSnapshot` as JSON. In the body each chunk follows its length, a
 * 32-bit little-endian integer.
 */
export const SNAPSHOT_HEADER = 'quorate-snapshot';
/** The most bytes per second that a node sends for backups, for all callers together. */
export const BACKUP_BYTES_PER_SECOND_MAX = 64 << 20;
/** The largest chunk in bytes (see raft/driver/local-snapshots.ts). */
export const BACKUP_CHUNK_BYTES_MAX = 256 << 10;
