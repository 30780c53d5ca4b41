/**
 * The state of one group, as both stores keep it in memory. Each method applies one field of a GroupWrite, in the order
 * given in raft/driver/store.ts. The methods rely on group-check.ts, which has refused invalid writes. No I/O.
 */
import { LOG_START } from '../raft/log.ts';
import type { StagedChunks } from '../raft/driver/store.ts';
import { NO_NODE, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { LogIndex } from './log-index.ts';

/** The staged chunks of a snapshot that is not in effect, the group's own or the leader's. */
export interface StagedSnapshot {
  readonly index: number;
  readonly chunkCount: number;
  readonly byteLength: number;
}

/** The staged snapshot after `stage` was added. */
export function stagedWith(before: StagedSnapshot | undefined, stage: StagedChunks): StagedSnapshot {
  const { index, first, chunks } = stage;
  let byteLength = first === 0 ? 0 : (before?.byteLength ?? 0);
  for (const chunk of chunks) byteLength += chunk.length;
  return { index, chunkCount: first + chunks.length, byteLength };
}

/** The state of one group. */
export class GroupState {
  hardState: HardState = { term: 0, vote: NO_NODE, commit: 0 };
  /** Invariant: snapshot.index >= log.baseIndex; otherwise the state up to the base would be lost. */
  snapshot: SnapshotMeta | undefined = undefined;
  /** Not recovered after a restart: the chunks become garbage. */
  staged: StagedSnapshot | undefined = undefined;
  /** The version of the placement that last concerned this replica. Never decreases. */
  placement = 0;
  /** The version of the placement that last removed the group; 0 if none did. Invariant: removedAt <= placement. */
  removedAt = 0;
  readonly log = new LogIndex();

  /** Whether only a tombstone is left. A group that came back has recorded a higher placement. */
  get isRemoved(): boolean {
    return this.removedAt > 0 && this.removedAt === this.placement;
  }

  get base(): LogPosition {
    return this.log.positionAt(this.log.baseIndex);
  }

  get last(): LogPosition {
    return this.log.positionAt(this.log.lastIndex);
  }

  /** Drops everything but the hard state. */
  remove(placement: number): void {
    this.placement = placement;
    this.removedAt = placement;
    this.snapshot = undefined;
    this.staged = undefined;
    this.log.reset(LOG_START, 0);
  }

  /** The leader's snapshot replaces the log. */
  install(meta: SnapshotMeta, chain: number): void {
    this.log.reset(meta, chain);
    this.snapshot = meta;
    this.staged = undefined;
  }

  /** Adds chunks to the staged snapshot. Chunks from 0 on begin a new one. */
  stage(stage: StagedChunks): void {
    this.staged = stagedWith(this.staged, stage);
  }

  /** The staged snapshot takes effect; the log stays. */
  publish(meta: SnapshotMeta): void {
    this.snapshot = meta;
    this.staged = undefined;
  }
}
