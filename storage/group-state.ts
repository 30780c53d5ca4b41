/**
 * Where one group stands, as both stores keep it in memory. The methods apply one field of a GroupWrite each, in
 * the order raft/store.ts gives; they trust group-check.ts to have refused what must not happen. No I/O.
 */
import { LOG_START } from '../raft/log.ts';
import { NO_NODE, type HardState, type LogPosition, type SnapshotMeta } from '../raft/types.ts';
import { LogIndex } from './log-index.ts';

/** Chunks of a snapshot of the local state machine that is not complete yet. */
export interface StagedSnapshot {
  readonly index: number;
  readonly chunkCount: number;
  readonly byteLength: number;
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

  /** Adds a chunk to the staged snapshot; chunk 0 or another index begins a new one. */
  stage(index: number, chunk: number, byteLength: number): void {
    const { staged } = this;
    const before = chunk === 0 || staged?.index !== index ? undefined : staged;
    this.staged = { index, chunkCount: chunk + 1, byteLength: (before?.byteLength ?? 0) + byteLength };
  }

  publish(meta: SnapshotMeta): void {
    this.snapshot = meta;
    this.staged = undefined;
  }
}
