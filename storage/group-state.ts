/**
 * Where one group stands, as both stores keep it in memory. The methods apply one field of a GroupWrite each, in
 * the order raft/driver/store.ts gives; they trust group-check.ts to have refused what must not happen. No I/O.
 */
import { LOG_START } from '../raft/log.ts';
import type { StagedChunks } from '../raft/driver/store.ts';
import { NO_NODE, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { LogIndex } from './log-index.ts';

/** Chunks of a snapshot that is not in effect, of the local state machine or from the leader. */
export interface StagedSnapshot {
  readonly index: number;
  readonly chunkCount: number;
  readonly byteLength: number;
}

/** What is staged after these chunks, too. */
export function stagedWith(before: StagedSnapshot | undefined, stage: StagedChunks): StagedSnapshot {
  const { index, first, chunks } = stage;
  let byteLength = first === 0 ? 0 : (before?.byteLength ?? 0);
  for (const chunk of chunks) byteLength += chunk.length;
  return { index, chunkCount: first + chunks.length, byteLength };
}

export class GroupState {
  hardState: HardState = { term: 0, vote: NO_NODE, commit: 0 };
  /** Invariant: snapshot.index >= log.baseIndex, or nothing could rebuild the state up to the base. */
  snapshot: SnapshotMeta | undefined = undefined;
  /** Lives only as long as the process: what a crash leaves of it is garbage. */
  staged: StagedSnapshot | undefined = undefined;
  /** Never falls. */
  placement = 0;
  /** The placement that removed the group last; 0 if none did. Invariant: removedAt <= placement. */
  removedAt = 0;
  readonly log = new LogIndex();

  /** Nothing but a tombstone: every placement recorded since would be higher. */
  get isRemoved(): boolean {
    return this.removedAt > 0 && this.removedAt === this.placement;
  }

  get base(): LogPosition {
    return this.log.positionAt(this.log.baseIndex);
  }

  get last(): LogPosition {
    return this.log.positionAt(this.log.lastIndex);
  }

  /** Forgets everything but the hard state. */
  remove(placement: number): void {
    this.placement = placement;
    this.removedAt = placement;
    this.snapshot = undefined;
    this.staged = undefined;
    this.log.reset(LOG_START, 0);
  }

  install(meta: SnapshotMeta, chain: number): void {
    this.log.reset(meta, chain);
    this.snapshot = meta;
    this.staged = undefined;
  }

  /** Adds chunks to the staged snapshot; those from 0 on begin a new one. */
  stage(stage: StagedChunks): void {
    this.staged = stagedWith(this.staged, stage);
  }

  publish(meta: SnapshotMeta): void {
    this.snapshot = meta;
    this.staged = undefined;
  }
}
