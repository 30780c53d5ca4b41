/** What a door may ask of its node for a backup: the state of one group, as a snapshot that is on disk, chunk by chunk. Types only. */

/** What one snapshot holds. The state of the group after entry `index`, of `term`, at group time `timeMillis`. */
export interface BackupSnapshot {
  readonly clusterId: string;
  /** How many there are, and the name of the function that maps users to them: fixed with the cluster. */
  readonly partitions: number;
  readonly hash: string;
  /** 0 is the group of the cluster itself, p + 1 that of partition p. */
  readonly group: number;
  readonly index: number;
  readonly term: number;
  readonly timeMillis: number;
  readonly chunkCount: number;
  readonly byteLength: number;
}

/**
 * Why there is none: `starting`: this node knows no group yet; `noSuchGroup`: no node has it; `notLeader`: another node leads
 * it, or nobody does: ask the others; `busy`: this node is being asked for another one.
 */
export type NoBackup = 'starting' | 'noSuchGroup' | 'notLeader' | 'busy';

/** To be closed by whoever got it, once. */
export interface OpenBackup {
  readonly snapshot: BackupSnapshot;
  /** Chunk 0 to `chunkCount` - 1; undefined if the snapshot was replaced meanwhile: ask again. Rejects if the disk fails. */
  readonly read: (chunk: number) => Promise<Uint8Array | undefined>;
  readonly close: () => void;
}

export type BackupStarted =
  | { readonly ok: true; readonly backup: OpenBackup }
  | { readonly ok: false; readonly reason: NoBackup };

/** Told once; never if the node stops before. */
export type BackupDone = (started: BackupStarted) => void;

/** The header in which a door tells a `BackupSnapshot` as JSON. Behind it each chunk follows its length, 32 bits little-endian. */
export const SNAPSHOT_HEADER = 'quorate-snapshot';
/** What leaves a node at most, whoever asks. */
export const BACKUP_BYTES_PER_SECOND_MAX = 64 << 20;
/** A chunk is not larger (raft/driver/local-snapshots.ts). */
export const BACKUP_CHUNK_BYTES_MAX = 256 << 10;
