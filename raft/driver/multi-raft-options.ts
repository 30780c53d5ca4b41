/** The surroundings and the settings of the driver, and its defaults. */
import { RAFT_DEFAULTS, type RaftOptions, type RandomBelow } from '../core-state.ts';
import type { PeerMessage } from './peer-message.ts';
import type { SnapshotStreamOptions } from './outgoing-snapshots.ts';
import type { LogStore } from './store.ts';
import type { GroupId, NodeId, SnapshotMeta } from '../types.ts';

/** The surroundings of the driver of one node. The simulator implements all of them. */
export interface MultiRaftInit {
  readonly id: NodeId;
  readonly store: LogStore;
  readonly random: RandomBelow;
  /** The clock, in milliseconds, for all group clocks of this node. Never runs back. */
  readonly monotonicMillis: () => number;
  readonly options: MultiRaftOptions;
  /** Runs `turn` soon, after the work that is already queued, but not now. */
  readonly defer: (turn: () => void) => void;
  /** Sends all messages of this turn to one peer. May drop them; Raft repairs that. */
  readonly send: (to: NodeId, messages: readonly PeerMessage[]) => void;
  /** A leader sent an invalid snapshot. It was dropped, and will be sent again. */
  readonly snapshotRefused?: (group: GroupId, meta: SnapshotMeta, error: unknown) => void;
  /** The disk failed or an invariant broke. The driver has stopped; the process must end. */
  readonly fatal: (error: unknown) => void;
}

/** The settings of the driver. */
export interface MultiRaftOptions {
  readonly raft: RaftOptions;
  /**
   * A group takes a snapshot after this many applied bytes, or after as many as its last snapshot had if that is more.
   */
  readonly snapshotEveryBytes: number;
  /** Bytes of log kept before a snapshot, for followers that are a little behind. */
  readonly keepLogBytes: number;
  /**
   * Bytes of entries per batch, of all groups together; each entry counts 512 bytes more than its data. The entry that
   * reaches the bound is the last; others wait for the next batch.
   */
  readonly writeBytesMax: number;
  /** Bytes of snapshot chunks per batch, in addition. The chunk that reaches the bound is the last. */
  readonly snapshotWriteBytesMax: number;
  /** Bytes of entries applied per turn, of all groups together, but at least one entry of each group that has any. */
  readonly applyBytesMax: number;
  readonly streams: SnapshotStreamOptions;
  /** A node whose disk write takes longer gives up its leaderships. Default: two election timeouts. */
  readonly diskStallTicksMax?: number;
  /** Ticks between two rounds in which a leader may hand one group to its preferred leader. */
  readonly balanceTicks: number;
}

/** The settings in production. */
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
