/** What may be set for the driver of all groups of a node, and what it runs with otherwise. */
import { RAFT_DEFAULTS, type RaftOptions } from './core-state.ts';
import type { SnapshotStreamOptions } from './snapshot-streams.ts';

export interface MultiRaftOptions {
  readonly raft: Omit<RaftOptions, 'preferred'>;
  /** A snapshot is taken after this many applied bytes, or after as many as the last snapshot had. */
  readonly snapshotEveryBytes: number;
  /** Log kept behind a snapshot for followers that are a little late. */
  readonly keepLogBytes: number;
  /** Snapshot chunks written per batch. */
  readonly snapshotWriteBytesMax: number;
  /** Entries applied per turn, of all groups together, but at least one of each that has any. */
  readonly applyBytesMax: number;
  readonly streams: SnapshotStreamOptions;
  /** A node whose disk write takes longer gives up its leaderships. Two election timeouts if absent. */
  readonly diskStallTicksMax?: number;
  /** How often a leader looks whether a group's preferred leader could take over; one group per look. */
  readonly balanceTicks: number;
}

export const MULTI_RAFT_DEFAULTS: MultiRaftOptions = {
  raft: RAFT_DEFAULTS,
  snapshotEveryBytes: 4 << 20,
  keepLogBytes: 1 << 20,
  snapshotWriteBytesMax: 1 << 20,
  applyBytesMax: 256 << 10,
  streams: { outgoingMax: 4, silentTicksMax: 300, bytesPerTickMax: 1 << 20 },
  balanceTicks: 25,
};
