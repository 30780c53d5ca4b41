/** What the driver of all groups of a node is given, what may be set, and what it runs with otherwise. */
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from '../core-state.ts';
import type { PeerMessage } from './peer-message.ts';
import type { SnapshotStreamOptions } from './outgoing-snapshots.ts';
import type { LogStore } from './store.ts';
import type { GroupId, NodeId, SnapshotMeta } from '../types.ts';

export interface MultiRaftInit {
  readonly id: NodeId;
  readonly store: LogStore;
  readonly random: RandomBelow;
  /** The clock that all group clocks of this node are read on. Never runs back. */
  readonly monotonicMillis: () => number;
  readonly options: MultiRaftOptions;
  /** Runs `turn` soon, but not now: after what is already queued. */
  readonly defer: (turn: () => void) => void;
  /** Hands over everything for one peer in this turn. May drop; Raft repairs. */
  readonly send: (to: NodeId, messages: readonly PeerMessage[]) => void;
  /** A leader sent a snapshot that is no sound one. It was forgotten, and will be sent again. */
  readonly snapshotRefused?: (group: GroupId, meta: SnapshotMeta, error: unknown) => void;
  /** The disk failed or an invariant broke. The driver has stopped; the process must end. */
  readonly fatal: (error: unknown) => void;
}

export interface MultiRaftOptions {
  readonly raft: RaftOptions;
  /** A snapshot is taken after this many applied bytes, or after as many as the last snapshot had. */
  readonly snapshotEveryBytes: number;
  /** Log kept behind a snapshot for followers that are a little late. */
  readonly keepLogBytes: number;
  /**
   * Entries written per batch, of all groups together: as many as it takes to reach this, each counted as its data and 512
   * bytes more. What does not fit waits for the next batch.
   */
  readonly writeBytesMax: number;
  /** Snapshot chunks written per batch, of all groups together, besides: as many as it takes to reach this. */
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
  writeBytesMax: 512 << 10,
  snapshotWriteBytesMax: 32 << 10,
  applyBytesMax: 256 << 10,
  streams: { outgoingMax: 4, silentTicksMax: 300, bytesPerTickMax: 1 << 20 },
  balanceTicks: 25,
};
